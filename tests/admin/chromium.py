"""Headless Chromium over its DevTools pipe: no library, no port. One page."""
import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def find():
    return next((path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None)


class Page:
    def __init__(self, width=1280, height=900):
        self.folder = tempfile.mkdtemp(prefix="kintsugi-chromium-")
        to_browser, ours_out = os.pipe()
        ours_in, from_browser = os.pipe()

        def pipes():
            # The browser reads from 3 and writes to 4.
            high = [os.dup2(to_browser, 100), os.dup2(from_browser, 101)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--disable-sync", "--mute-audio",
             "--remote-debugging-pipe", f"--user-data-dir={self.folder}", f"--window-size={width},{height}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=pipes,
            close_fds=False)
        os.close(to_browser)
        os.close(from_browser)
        self.out, self.inp, self.buffer, self.number = ours_out, ours_in, b"", 0
        self.events, self.session = [], None
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        self.call("Page.enable")
        self.call("Runtime.enable")
        self.call("Log.enable")

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + 30
        while True:
            while b"\0" not in self.buffer:
                if not select.select([self.inp], [], [], max(until - time.monotonic(), 0))[0]:
                    raise TimeoutError(method)
                piece = os.read(self.inp, 1 << 20)
                if not piece:
                    raise ConnectionError("Chromium has ended")
                self.buffer += piece
            line, self.buffer = self.buffer.split(b"\0", 1)
            answer = json.loads(line)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def run(self, script):
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description", "") + " in " + script)
        return answer["result"].get("value")

    def wait(self, script, seconds=20):
        until = time.monotonic() + seconds
        while True:
            value = self.run(f"(() => {{ const v = ({script}); return v instanceof Node ? true : v; }})()")
            if value:
                return value
            if time.monotonic() > until:
                raise TimeoutError(f"never true: {script}\n" + str(self.run("document.body.innerText"))[:3000])
            time.sleep(0.1)

    def go(self, url):
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'")

    def size(self, width, height, phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def colours(self, scheme):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, path):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=False)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def click(self, selector):
        """With the mouse, in the middle of the element, as a person would."""
        box = self.wait(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); if (!e) return null; "
                        "e.scrollIntoView({block: 'center'}); const b = e.getBoundingClientRect(); "
                        "return b.width ? [b.x + b.width / 2, b.y + b.height / 2] : null; })()")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=box[0], y=box[1], button="left", clickCount=1)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def key(self, key, code=None, **more):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=code or key, **more)

    def complaints(self):
        """What the page has written to its console as an error, and exceptions nobody caught."""
        self.run("1")
        found = []
        for event in self.events:
            if event["method"] == "Runtime.exceptionThrown":
                details = event["params"]["exceptionDetails"]
                found.append(details.get("exception", {}).get("description", details["text"]))
            if event["method"] == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
                found.append(event["params"]["entry"]["text"] + " " + event["params"]["entry"].get("url", ""))
        return found

    def close(self):
        try:
            self.session = None
            self.call("Browser.close")
        except (OSError, RuntimeError, TimeoutError):
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
