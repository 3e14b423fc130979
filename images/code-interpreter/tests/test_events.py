import json
import unittest
from unittest import mock

import fake
import events


class Events(unittest.TestCase):
    def test_results(self):
        event = events.of_message(fake.message("execute_result", data={"text/plain": "'a'", "text/html": "<b>", "image/png": "iVBOR", "x/y": 1}))
        self.assertEqual(event, {"type": "result", "is_main_result": True, "text": "a", "html": "<b>", "png": "iVBOR", "extra": {"x/y": 1}})
        self.assertFalse(events.of_message(fake.message("display_data", data={}))["is_main_result"])
        for text in ("'", "''", '"a\'"', "'a"):
            self.assertEqual(events.result({"text/plain": text}, True)["text"], "" if text == "''" else text)

    def test_the_rest(self):
        self.assertEqual(events.of_message(fake.stream("é\ud800")), {"type": "stdout", "text": "é\ud800", "timestamp": "now"})
        self.assertEqual(events.of_message(fake.message("error", ename="E", evalue="v", traceback=["a", "b"])), events.error("E", "v", "a\nb"))
        self.assertEqual(events.of_message(fake.message("execute_input", execution_count=3))["execution_count"], 3)
        self.assertIsNone(events.of_message(fake.IDLE))
        self.assertTrue(events.is_idle(fake.IDLE))

    def test_forged(self):
        """Code inside can publish what it likes."""
        for kind in ("stream", "execute_result", "display_data", "error", "execute_input"):
            for content in ({}, {"name": 1, "text": 2, "data": 3, "traceback": 4}, {"data": {"text/plain": []}, "name": "other", "text": ""}):
                events.of_message(fake.message(kind, **content))
        self.assertIsNone(events.of_message(fake.message("stream", name="end_of_execution", text="")))
        self.assertFalse(events.is_idle(fake.message("status")))

    def test_lines(self):
        line = events.line(events.of_message(fake.stream("é\ud800\n")))
        self.assertTrue(line.isascii() and line.count(b"\n") == 1)
        with mock.patch.object(events, "MAX_EVENT", 100):
            said = json.loads(events.line({"type": "stdout", "text": "x" * 100}))
        self.assertEqual(said["type"], "stderr")
        self.assertIn("left out", said["text"])


if __name__ == "__main__":
    unittest.main()
