#!/usr/bin/python3
"""No two tests are given one port, in whichever language they ask, and the kernel gives none of them away. argv[1] is
kg_print_ports, which takes as many as it is told until its input ends."""
import pathlib
import subprocess
import sys
import unittest

PRINT = sys.argv.pop(1)
CLIENTS = pathlib.Path(__file__).resolve().parents[1] / "clients"
sys.path.insert(0, str(CLIENTS))
import ports  # noqa: E402

IN_PYTHON = ("import sys, ports\nfor _ in range(int(sys.argv[1])): print(ports.free_port())\n"
             "print('end', flush=True)\nsys.stdin.readline()")


class Ports(unittest.TestCase):
    def start(self, *command):
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": str(CLIENTS)})
        self.addCleanup(process.communicate)
        return process

    def taken(self, process):
        return [int(line) for line in iter(process.stdout.readline, "end\n")]

    def test_everybody_has_others(self):
        """A third of all there are, asked for at the same time: by chance hundreds would be the same."""
        takers = [self.start(*command, "400") for command in ([sys.executable, "-c", IN_PYTHON], [PRINT]) for _ in range(5)]
        numbers = [port for taker in takers for port in self.taken(taker)]
        self.assertEqual(len(numbers), 4000)
        self.assertEqual(len(set(numbers)), 4000)
        self.assertTrue(all(ports.FIRST <= port <= ports.LAST for port in numbers))

    def test_a_port_can_be_had_again_when_its_taker_has_ended(self):
        for command in ([sys.executable, "-c", IN_PYTHON], [PRINT]):
            with self.subTest(command[0]):
                taker = self.start(*command, "50")
                numbers = self.taken(taker)
                self.assertFalse(any(ports._lock(port) for port in numbers))
                taker.communicate()
                self.assertTrue(all(ports._lock(port) for port in numbers))

    def test_the_kernel_gives_none_of_them_to_an_outgoing_connection(self):
        low, high = map(int, pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split())
        self.assertTrue(high < ports.FIRST or ports.LAST < low, (low, high))


if __name__ == "__main__":
    unittest.main()
