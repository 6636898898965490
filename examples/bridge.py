#!/usr/bin/env python3
"""Bridges an outside address to an agent: lines of standard input ("sender: text") are messages, answers are printed.

    export WEBHOOK_SECRET=whsec_...        # the same value as in `agentd secret set BRIDGE`
    python3 bridge.py chat:demo            # prints its own URL first
    agentd bind coder chat:demo --webhook URL --secret BRIDGE
"""
import base64, hashlib, hmac, http.client, http.server, json, os, socket, sys, threading, time, urllib.parse, uuid

ADDRESS, KEY = sys.argv[1], base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))
HOME = os.environ.get("AGENTD_HOME") or os.path.expanduser("~/.local/state/agentd")
SEEN = set()  # Ids of messages: one that arrives twice is printed once. A real bridge keeps them on disk.


class Answers(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        id, at, signature = (self.headers.get(f"webhook-{it}", "") for it in ("id", "timestamp", "signature"))
        mac = hmac.new(KEY, f"{id}.{at}.".encode() + body, hashlib.sha256).digest()
        good = hmac.compare_digest(signature.encode(), b"v1," + base64.b64encode(mac))
        good = good and abs(time.time() - int(at)) < 300  # An old message may be a copy that another sender kept.
        if good and id not in SEEN:
            message = json.loads(body)
            print(message["type"], message["data"].get("text") or "", flush=True)
            SEEN.add(id)
        self.send_response(204 if good else 401)  # Only after the message was handled.
        self.end_headers()

    def log_message(self, *_):
        pass


def post(sender, text):
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(os.path.join(HOME, "run/api.sock"))
    body = json.dumps({"id": str(uuid.uuid4()), "sender": sender, "text": text})
    path = f"/v1/bindings/{urllib.parse.quote(ADDRESS, safe='')}/messages"
    connection.request("POST", path, body, {"content-type": "application/json"})
    print(connection.getresponse().read().decode(), file=sys.stderr)


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
print(f"http://127.0.0.1:{server.server_port}/", flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
for line in sys.stdin:
    sender, _, text = line.strip().partition(": ")
    post(sender, text)
threading.Event().wait()
