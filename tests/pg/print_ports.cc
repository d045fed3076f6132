// For tests/house/ports_test.py: takes argv[1] ports, prints them, and has them until its input ends.
#include <cstdlib>
#include <iostream>
#include <string>

#include "tests/pg/port.h"

int main(int, char** arguments) {
  for (int left = std::atoi(arguments[1]); left > 0; --left) std::cout << kintsugi::pgtest::free_port() << "\n";
  std::cout << "end" << std::endl;
  std::string line;
  std::getline(std::cin, line);
}
