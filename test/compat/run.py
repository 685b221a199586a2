#!/usr/bin/env python3
"""Runs the behaviour corpus against an Ingress controller: see FORMAT.md.

    run.py --kubeconfig F --netns PID --restart CMD --check  DIR
    run.py --kubeconfig F --netns PID --restart CMD --record DIR

It applies the objects of the cases, waits until they are served, sends the
requests byte by byte as written, and compares (--check) or writes down
(--record) what came back and what the backends saw.  It looks at nothing but
HTTP(S) answers and Kubernetes objects.
"""
import argparse
import base64
import collections
import copy
import glob
import hashlib
import http.client
import json
import os
import random
import re
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import warnings
from concurrent.futures import ThreadPoolExecutor

import yaml

DOMAIN = "corpus.test"
CLIENT = "10.250.1.1"
ADMIN = ("10.250.0.254", 7000)
PODS = {f"p{i}": f"10.250.0.{i}" for i in range(1, 17)}
PODS.update({f"p{i}": f"10.250.3.{i - 16}" for i in range(17, 157)})
PODS.update({"auth": "10.250.0.50", "auth2": "10.250.0.51", "errors": "10.250.0.60", "errors2": "10.250.0.61",
             "mirror": "10.250.0.70", "dead": "10.250.0.90", "lost": "10.250.0.250"})
LISTENING = [ip for n, ip in PODS.items() if n not in ("dead", "lost")] + ["10.250.0.53", ADMIN[0]]
PORTS = {"http": 8080, "https": 8443, "fcgi": 9000, "closed": 8099}
DEFAULT_CHECK = ["status", "backend", "target", "h:Location"]
UNCOMPARED = {"date", "connection", "keep-alive", "content-length", "transfer-encoding", "echo-pod"}
ARGS = None


# ---------------------------------------------------------------- Kubernetes

class API:
    """A tiny client: server-side apply, get, delete."""

    PLURAL = {"Ingress": "ingresses", "IngressClass": "ingressclasses", "EndpointSlice": "endpointslices",
              "ConfigMap": "configmaps", "Secret": "secrets", "Service": "services", "Namespace": "namespaces",
              "Pod": "pods", "Event": "events", "ValidatingWebhookConfiguration": "validatingwebhookconfigurations",
              "ServiceAccount": "serviceaccounts"}
    GLOBAL = {"Namespace", "IngressClass", "ValidatingWebhookConfiguration"}

    def __init__(self, kubeconfig):
        k = yaml.safe_load(open(kubeconfig))
        ctx = {c["name"]: c["context"] for c in k["contexts"]}[k["current-context"]]
        cl = {c["name"]: c["cluster"] for c in k["clusters"]}[ctx["cluster"]]
        us = {c["name"]: c["user"] for c in k["users"]}[ctx["user"]]
        u = urllib.parse.urlsplit(cl["server"])
        self.host, self.port = u.hostname, u.port or 443

        def path(d, key):
            if key in d:
                return d[key]
            if key + "-data" in d:
                t = tempfile.NamedTemporaryFile(delete=False)
                t.write(base64.b64decode(d[key + "-data"]))
                t.close()
                return t.name
            return None

        self.ctx = ssl.create_default_context(cafile=path(cl, "certificate-authority"))
        if cl.get("insecure-skip-tls-verify"):
            self.ctx.check_hostname, self.ctx.verify_mode = False, ssl.CERT_NONE
        if path(us, "client-certificate"):
            self.ctx.load_cert_chain(path(us, "client-certificate"), path(us, "client-key"))
        self.token = us.get("token")
        self.local = threading.local()

    def call(self, method, path, body=None, ctype="application/json"):
        for attempt in range(3):
            c = getattr(self.local, "c", None)
            if c is None:
                c = self.local.c = http.client.HTTPSConnection(self.host, self.port, context=self.ctx, timeout=30)
            h = {"Content-Type": ctype, "Accept": "application/json"}
            if self.token:
                h["Authorization"] = "Bearer " + self.token
            try:
                c.request(method, path, body=json.dumps(body) if body is not None else None, headers=h)
                r = c.getresponse()
                d = r.read()
                self.local.warnings = r.headers.get_all("Warning") or []
                return r.status, (json.loads(d) if d else {})
            except (OSError, http.client.HTTPException):
                self.local.c = None
                if attempt == 2:
                    raise

    def path(self, o, name=True):
        v, kind, m = o["apiVersion"], o["kind"], o["metadata"]
        p = ("/api/" if "/" not in v else "/apis/") + v
        if kind not in self.GLOBAL:
            p += "/namespaces/" + m["namespace"]
        return p + "/" + self.PLURAL[kind] + ("/" + m["name"] if name else "")

    def apply(self, o):
        query = "?fieldManager=corpus&force=true"
        s, r = self.call("PATCH", self.path(o) + query, o, "application/apply-patch+yaml")
        if s < 300 and "status" in o:       # somebody else writes a status: a place of its own in the API
            s, r = self.call("PATCH", self.path(o) + "/status" + query, o, "application/apply-patch+yaml")
        return s, r

    def get(self, o):
        return self.call("GET", self.path(o))

    def delete(self, o):
        return self.call("DELETE", self.path(o) + "?gracePeriodSeconds=0")


# ------------------------------------------------------------------- fixture

def sh(*cmd, check=True, **kw):
    return subprocess.run(cmd, check=check, capture_output=True, text=True, **kw)


class Fixture:
    """The addresses of the fixture network, the certificates and the echo."""

    def __init__(self):
        self.proc = None
        self.certs = {}
        self.dir = tempfile.mkdtemp(prefix="corpus-")
        self.binary = ARGS.echo_binary or os.path.join(self.dir, "corpus-echo")
        if not ARGS.echo_binary:
            src = os.path.join(os.path.dirname(os.path.abspath(__file__)), "echo")
            env = dict(os.environ, CGO_ENABLED="0", GOTOOLCHAIN="local")
            subprocess.run(["go", "build", "-o", self.binary, "."], cwd=src, env=env, check=True)

    def network(self):
        if sh("ip", "link", "show", "corpus0", check=False).returncode:
            sh("ip", "link", "add", "corpus0", "type", "bridge")
        sh("ip", "link", "set", "corpus0", "up")
        have = sh("ip", "-o", "-4", "addr", "show", "dev", "corpus0").stdout
        # "dead" has no listener, so it refuses at once; "lost" does not exist
        # and has a fixed link address, so nothing ever answers.
        want = [ip + "/16" for ip in LISTENING + [PODS["dead"]]] + [f"10.250.{n}.{i}/16" for n in (1, 2) for i in range(1, 21)]
        have = set(re.findall(r" (10\.[0-9.]+)/", have))
        todo = "".join(f"addr add {a} dev corpus0\n" for a in want if a.split("/")[0] not in have)
        if todo:
            subprocess.run(["ip", "-force", "-batch", "-"], input=todo, capture_output=True, text=True)
        sh("ip", "neigh", "replace", PODS["lost"], "lladdr", "02:00:00:00:00:fa", "dev", "corpus0", "nud", "permanent")

    def make_certs(self, specs):
        r = subprocess.run([self.binary, "certs"], input=json.dumps(specs), capture_output=True, text=True)
        if r.returncode:
            sys.exit("certificates: " + r.stderr)
        self.certs.update(json.loads(r.stdout))
        MADE.update(hashlib.sha256(ssl.PEM_cert_to_DER_cert(p)).hexdigest()
                    for c in self.certs.values() for p in re.findall("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", c["crt"], re.S))

    def start(self):
        p = os.path.join(self.dir, "backend.pem")
        b = self.certs["backend"]
        with open(p, "w") as f:
            f.write(b["crt"] + b["key"])
        self.proc = subprocess.Popen([self.binary, "serve", "--tls", p], stdout=subprocess.PIPE, stderr=open(os.path.join(self.dir, "echo.log"), "w"),
                                     env=dict(os.environ, CORPUS_CONTROLLER=ARGS.http.rpartition(":")[0]))
        if self.proc.stdout.readline().strip() != b"ready":
            sys.exit("echo did not start, see " + os.path.join(self.dir, "echo.log"))

    def stop(self):
        if self.proc:
            self.proc.kill()
            self.proc.wait()


BASE_CERTS = [
    {"name": "backend-ca", "cn": "Corpus Backend CA", "is_ca": True},
    {"name": "backend", "cn": "backend.corpus.test", "sans": ["backend.corpus.test", "*.backend.corpus.test"], "ca": "backend-ca"},
    {"name": "server-ca", "cn": "Corpus Server CA", "is_ca": True},
    {"name": "client-ca", "cn": "Corpus Client CA", "is_ca": True},
    {"name": "client-sub-ca", "cn": "Corpus Client Sub CA", "is_ca": True, "ca": "client-ca"},
    {"name": "client-sub2-ca", "cn": "Corpus Client Sub Sub CA", "is_ca": True, "ca": "client-sub-ca"},
    {"name": "other-ca", "cn": "Corpus Other CA", "is_ca": True},
    {"name": "client", "cn": "client-one", "org": "Corpus", "ca": "client-ca"},
    {"name": "client-two", "cn": "client-two", "org": "Corpus", "ca": "client-ca"},
    {"name": "client-expired", "cn": "client-expired", "ca": "client-ca", "expired": True},
    {"name": "client-revoked", "cn": "client-revoked", "ca": "client-ca", "revoked": True},
    {"name": "client-deep", "cn": "client-deep", "ca": "client-sub-ca"},
    {"name": "client-deeper", "cn": "client-deeper", "ca": "client-sub2-ca"},
    {"name": "client-other", "cn": "client-other", "ca": "other-ca"},
    {"name": "client-self", "cn": "client-self"},
    {"name": "webhook", "cn": "webhook", "sans": ["10.244.0.1", "127.0.0.1", "10.250.0.254"], "ca": "server-ca"},
]


# --------------------------------------------------------------------- cases

class Case:
    def __init__(self, file):
        self.file = file
        self.doc = yaml.safe_load(open(file))
        self.id = self.doc["id"]
        self.slug = re.sub(r"[^a-z0-9]+", "-", self.id.lower()).strip("-")
        self.ns = "c-" + self.slug[:52] + "-" + ARGS.run_id
        self.host = self.slug[:63] + "." + DOMAIN
        self.vars = {"NS": self.ns, "HOST": self.host, "SLUG": self.slug, "CLASS": ARGS.ingress_class,
                     "CLIENT": CLIENT, "AUTH": PODS["auth"] + ":8080", "AUTH2": PODS["auth2"] + ":8080",
                     "AUTH_TLS": PODS["auth"] + ":8443", "ERRORS": PODS["errors"], "MIRROR": PODS["mirror"] + ":8080",
                     "HTTP_PORT": str(ARGS.http.rpartition(":")[2]), "HTTPS_PORT": str(ARGS.https.rpartition(":")[2]),
                     "STATUS_ADDRESS": ARGS.status_address, "CERT_DIR": ARGS.cert_dir or "", "HTTP_IP": ARGS.http.rpartition(":")[0]}
        self.vars.update({n.upper(): ip for n, ip in PODS.items() if n not in ("auth", "auth2", "errors", "mirror")})
        self.results = []     # (request name, observation)
        self.failures = []
        self.notes = []
        self.by_better = 0
        self.applied = []
        self.jar = {}
        self.pods_of = {}
        self.services()

    def services(self):
        """Which Service owns which pod, so that answers can be named by Service."""
        self.owner = {}
        for svc, b in (self.doc.get("backends") or {}).items():
            for p in b.get("pods") or []:
                self.owner.setdefault(p, svc)

    def key(self):
        d = self.doc
        alone = self.id if d.get("exclusive") else ""
        return (tuple(d.get("flags") or []), json.dumps(d.get("controller-config") or {}, sort_keys=True),
                json.dumps(d.get("config-objects") or [], sort_keys=True), json.dumps(d.get("live") or {}, sort_keys=True), alone or str(d.get("webhook") or ""))

    def expand(self, v, fixture=None):
        if isinstance(v, dict):
            return {self.expand(k, fixture): self.expand(x, fixture) for k, x in v.items()}
        if isinstance(v, list):
            return [self.expand(x, fixture) for x in v]
        if not isinstance(v, str) or "${" not in v:
            return v

        def sub(m):
            n = m.group(1)
            if n in self.vars:
                return self.vars[n]
            if n.startswith("CERT:"):
                _, name, part = n.split(":")
                c = fixture.certs.get(self.slug + "/" + name) or fixture.certs[name]
                if part == "chain":
                    return c["crt"] + fixture.certs["client-sub-ca"]["crt"]
                return c[part]
            return m.group(0)

        return re.sub(r"\$\{([A-Z0-9_]+|CERT:[a-z0-9-]+:[a-z]+)\}", sub, v)

    def contract(self, text):
        """The other way: names of this run back to placeholders."""
        if not isinstance(text, str):
            return text
        for v, n in ((self.ns, "NS"), (self.host, "HOST"), (self.slug, "SLUG")):
            text = text.replace(v, "${" + n + "}")
        return text

    def backend_objects(self, fixture):
        out = []
        for svc, b in (self.expand(self.doc.get("backends") or {})).items():
            ports = b.get("ports") or [{"name": "http", "port": 80, "to": b.get("to", "http")}]
            sp, ep = [], []
            for p in ports:
                to = PORTS.get(p.get("to", "http"), p.get("to"))
                sp.append({"name": p["name"], "port": p["port"], "targetPort": p.get("targetPort", to), "protocol": "TCP"})
                ep.append({"name": p["name"], "port": to, "protocol": "TCP"})
            spec = {"ports": sp}
            if b.get("headless"):
                spec["clusterIP"] = "None"
            out.append({"apiVersion": "v1", "kind": "Service", "metadata": {"name": svc, "namespace": self.ns, "annotations": b.get("annotations") or {}}, "spec": spec})
            pods = b.get("pods") or []
            if pods:
                out.append(self.slice(svc, pods, ep, set(b.get("not-ready") or [])))
        return out

    def slice(self, svc, pods, ports, notready=()):
        return {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                "metadata": {"name": svc + "-1", "namespace": self.ns, "labels": {"kubernetes.io/service-name": svc}},
                "addressType": "IPv4", "ports": ports,
                "endpoints": [{"addresses": [PODS.get(p, p)], "conditions": {"ready": p not in notready}} for p in pods]}

    def prepare(self, o, fixture):
        o = self.expand(copy.deepcopy(o), fixture)
        if "pods-of" in o:   # shorthand in steps: new endpoints of a Service
            svc = o["pods-of"]
            b = self.doc["backends"][svc]
            ports = b.get("ports") or [{"name": "http", "port": 80, "to": b.get("to", "http")}]
            ep = [{"name": p["name"], "port": PORTS.get(p.get("to", "http"), p.get("to")), "protocol": "TCP"} for p in ports]
            for p in o["pods"]:
                self.owner.setdefault(p, svc)
            return self.slice(svc, o["pods"], ep, set(o.get("not-ready") or []))
        if o["kind"] not in API.GLOBAL:
            o.setdefault("metadata", {}).setdefault("namespace", self.ns)
        if o["kind"] == "Secret" and "stringData" in o:
            o["data"] = {**o.get("data", {}), **{k: base64.b64encode(v.encode()).decode() for k, v in o.pop("stringData").items()}}
        return o


def load(paths):
    files = []
    for p in paths:
        files += sorted(glob.glob(p + "/**/*.yaml", recursive=True)) if os.path.isdir(p) else [p]
    cases = [Case(f) for f in files]
    if ARGS.only:
        cases = [c for c in cases if re.search(ARGS.only, c.id)]
    seen = {}
    for c in cases:
        if c.id in seen:
            sys.exit(f"two cases are called {c.id}: {c.file} {seen[c.id]}")
        seen[c.id] = c.file
    return cases


# ---------------------------------------------------------------------- HTTP

class Answer:
    def __init__(self):
        self.status = None
        self.proto = ""
        self.reason = ""
        self.headers = []
        self.body = b""
        self.error = None
        self.tls = None
        self.time = 0.0
        self.start = time.time()
        self.head_time = None
        self.trailers = []
        self.frames = []
        self.extra = []
        self.informational = []


class Reader:
    def __init__(self, sock):
        self.s, self.b, self.eof = sock, b"", False

    def more(self):
        d = self.s.recv(65536)
        if not d:
            self.eof = True
            raise EOFError
        self.b += d

    def line(self):
        while b"\n" not in self.b:
            self.more()
        l, _, self.b = self.b.partition(b"\n")
        return l.rstrip(b"\r").decode("latin-1")

    def exactly(self, n):
        while len(self.b) < n:
            self.more()
        d, self.b = self.b[:n], self.b[n:]
        return d


def read_answer(r, method, a):
    l = r.line()
    m = re.match(r"(HTTP/\d\.\d) (\d+) ?(.*)", l)
    if not m:
        a.error = "not HTTP"
        a.body = (l + "\n").encode("latin-1") + r.b
        return
    a.proto, a.status, a.reason = m.group(1), int(m.group(2)), m.group(3)
    a.headers = []
    while True:
        l = r.line()
        if not l:
            break
        k, _, v = l.partition(":")
        a.headers.append((k, v.strip()))
    if 100 <= a.status < 200 and a.status != 101:
        a.informational.append(a.status)
        return read_answer(r, method, a)
    a.head_time = time.time() - a.start
    h = {k.lower(): v for k, v in a.headers}
    if method == "HEAD" or a.status in (204, 304, 101):
        return
    try:
        if "chunked" in h.get("transfer-encoding", "").lower():
            while True:
                n = int(r.line().split(";")[0] or "0", 16)
                if n == 0:
                    while True:
                        l = r.line()
                        if not l:
                            return
                        a.trailers.append(tuple(x.strip() for x in l.split(":", 1)))
                a.body += r.exactly(n)
                r.line()
        elif "content-length" in h:
            n = int(h["content-length"])
            while len(r.b) < n:
                r.more()
            a.body, r.b = r.b[:n], r.b[n:]
        else:
            while True:
                r.more()
    except EOFError:
        a.body += r.b
        if "chunked" in h.get("transfer-encoding", "").lower() or "content-length" in h:
            a.error = "cut short"


_certs = {}
MADE = set()    # hashes of the certificates that the runner made


def describe_cert(der):
    """What a certificate says; one that the runner did not make is the controller's own, whatever that says."""
    k = hashlib.sha256(der).hexdigest()
    if MADE and k not in MADE:
        return {"cn": "${DEFAULT}", "sans": [], "issuer": "${DEFAULT}"}
    if k not in _certs:
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as f:
            f.write(ssl.DER_cert_to_PEM_cert(der))
            f.flush()
            d = ssl._ssl._test_decode_cert(f.name)
        cn = [v for rdn in d.get("subject", ()) for n, v in rdn if n == "commonName"]
        ca = [v for rdn in d.get("issuer", ()) for n, v in rdn if n == "commonName"]
        _certs[k] = {"cn": cn[0] if cn else "", "sans": sorted(v for _, v in d.get("subjectAltName", ())), "issuer": ca[0] if ca else ""}
    return _certs[k]


warnings.filterwarnings("ignore", category=DeprecationWarning)
VERSIONS = {"1.0": "TLSv1", "1.1": "TLSv1_1", "1.2": "TLSv1_2", "1.3": "TLSv1_3"}


def tls_wrap(s, q, fixture):
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    c.check_hostname, c.verify_mode = False, ssl.CERT_NONE
    t = q.get("tls") or {}
    if "min" in t:
        c.minimum_version = getattr(ssl.TLSVersion, VERSIONS[t["min"]])
    if "max" in t:
        c.maximum_version = getattr(ssl.TLSVersion, VERSIONS[t["max"]])
    if "ciphers" in t:
        c.set_ciphers(t["ciphers"])
    if "alpn" in t:
        c.set_alpn_protocols(t["alpn"])
    if q.get("client-cert"):
        m = fixture.certs[q["client-cert"]]
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as f:
            chain = [fixture.certs[n]["crt"] for n in ("client-sub2-ca", "client-sub-ca")] if q.get("client-chain") else []
            f.write(m["crt"] + "".join(chain if "deeper" in q["client-cert"] else chain[1:]) + m["key"])
            f.flush()
            c.load_cert_chain(f.name)
    return c.wrap_socket(s, server_hostname=q["sni"] or None, do_handshake_on_connect=False)


def connect(q):
    addr = q["address"]
    s = socket.socket(socket.AF_INET6 if ":" in addr[0] else socket.AF_INET)
    s.settimeout(q["timeout"])
    if q["client"] and ":" not in addr[0]:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind((q["client"], 0))
    s.connect(addr)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def bytes_of(q, rid):
    """The request as it goes over the wire."""
    if "raw" in q:
        return q["raw"].replace("${ID}", rid).encode("latin-1")
    body = b""
    heads = []
    spec = q.get("body")
    chunked = False
    if isinstance(spec, dict):
        body = b"b" * spec["size"] if "size" in spec else spec.get("text", "").encode()
        chunked = spec.get("chunked", False)
    elif spec is not None:
        body = str(spec).encode()
    names = {k.lower() for k, _ in q["headers"]}
    if q["host"] is not None and "host" not in names:
        heads.append(("Host", q["host"]))
    heads += q["headers"]
    if q["id"]:
        heads.append(("X-Corpus-Id", rid))
    if chunked:
        heads.append(("Transfer-Encoding", "chunked"))
        body = (b"%x\r\n%s\r\n" % (len(body), body) if body else b"") + b"0\r\n\r\n"
    elif (spec is not None or q["method"] in ("POST", "PUT", "PATCH")) and "content-length" not in names:
        heads.append(("Content-Length", str(len(body))))
    if "connection" not in names and q["http"] != "1.0" and "websocket" not in q and not q.get("keep"):
        heads.append(("Connection", "close"))
    head = f"{q['method']} {q['path']} HTTP/{q['http']}\r\n" + "".join(f"{k}: {v}\r\n" for k, v in heads) + "\r\n"
    return head.encode("utf-8") + body


def ws_frame(text):
    b = text.encode()
    mask = os.urandom(4)
    n = bytes([0x80 | len(b)]) if len(b) < 126 else bytes([0x80 | 126]) + struct.pack("!H", len(b))
    return b"\x81" + n + mask + bytes(x ^ mask[i % 4] for i, x in enumerate(b))


def ws_read(r):
    h = r.exactly(2)
    n = h[1] & 0x7f
    if n == 126:
        n = struct.unpack("!H", r.exactly(2))[0]
    elif n == 127:
        n = struct.unpack("!Q", r.exactly(8))[0]
    return r.exactly(n).decode("utf-8", "replace")


def send(q, rid, fixture):
    a = Answer()
    t0 = time.time()
    if q["http"] in ("2", "grpc"):
        return send_h2(q, rid, fixture)
    try:
        s = connect(q)
    except OSError as e:
        a.error = "connect: " + (e.strerror or str(e))
        a.time = time.time() - t0
        return a
    try:
        if q.get("proxy-protocol"):
            s.sendall(q["proxy-protocol"].encode() + b"\r\n")
        if q["scheme"] == "https":
            s = tls_wrap(s, q, fixture)
            try:
                s.do_handshake()
            except ssl.SSLError as e:
                a.error = "tls: " + (e.reason or "failed")
                return a
            a.tls = {"version": s.version(), "cipher": s.cipher()[0], "alpn": s.selected_alpn_protocol(), **describe_cert(s.getpeercert(True))}
        data = bytes_of(q, rid)
        r = Reader(s)
        try:
            if q.get("split"):      # bytes in pieces with pauses
                n = q["split"]["bytes"]
                for i in range(0, len(data), n):
                    s.sendall(data[i:i + n])
                    time.sleep(q["split"]["pause"])
            else:
                s.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass   # an early answer may be waiting
        try:
            read_answer(r, q["method"], a)
            if "websocket" in q and a.status == 101:
                for m in q["websocket"]:
                    if isinstance(m, dict):
                        time.sleep(m["pause"])
                        continue
                    s.sendall(ws_frame(m))
                    a.frames.append(ws_read(r))
            if q.get("responses"):
                for _ in range(q["responses"] - 1):
                    b = Answer()
                    read_answer(r, q["method"], b)
                    a.extra.append(b)
        except EOFError:
            if a.status is None:
                a.error = "closed"
            else:
                a.extra.append("closed")
    except socket.timeout:
        a.error = "timeout"
    except ssl.SSLError as e:
        a.error = "tls: " + (e.reason or "failed")
    except ConnectionResetError:
        if a.status is None:
            a.error = "reset"
    except OSError as e:
        a.error = str(e)
    finally:
        a.time = time.time() - t0
        s.close()
    return a


def send_h2(q, rid, fixture):
    a = Answer()
    j = {"addr": "%s:%d" % q["address"], "source": q["client"], "tls": q["scheme"] == "https", "sni": q["sni"] or "", "host": q["host"] or "", "method": q["method"],
         "path": q["path"], "headers": [list(h) for h in q["headers"]] + [["X-Corpus-Id", rid]], "body": q.get("body") or "", "grpc": q["http"] == "grpc", "timeout": q["timeout"]}
    t0 = time.time()
    r = subprocess.run([fixture.binary, "h2"], input=json.dumps(j), capture_output=True, text=True)
    a.time = time.time() - t0
    try:
        d = json.loads(r.stdout)
    except ValueError:
        a.error = "h2: " + r.stderr
        return a
    if d.get("error") and not d["status"]:
        a.error = "h2: failed"
        a.reason = d["error"]
        return a
    a.status, a.proto, a.headers, a.trailers, a.body = d["status"], d["proto"], [tuple(h) for h in d["headers"] or []], [tuple(h) for h in d["trailers"] or []], d["body"].encode()
    return a


def fetch_seen(rid):
    c = http.client.HTTPConnection(*ADMIN, timeout=5)
    c.request("GET", "/seen?id=" + rid)
    d = json.loads(c.getresponse().read())
    c.close()
    return d


# --------------------------------------------------------------- observation

def normal(text):
    text = re.sub(r"\b[0-9a-f]{32}\b", "${ID}", text)
    text = re.sub(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "${UUID}", text)
    text = re.sub(r"\b(INGRESSCOOKIE|stick|MYSESSION)=[^;,\s]+", r"\1=${STICKY}", text)
    text = re.sub(r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d[- ]\w{3}[- ]\d{2,4} \d\d:\d\d:\d\d GMT", "${DATE}", text)
    return text


def header_map(case, headers, drop=()):
    out = collections.OrderedDict()
    for k, v in headers:
        n = "-".join(w.capitalize() for w in k.split("-"))
        if n.lower() in drop:
            continue
        out.setdefault(n, []).append(case.contract(normal(v)))
    return {k: out[k] for k in sorted(out)}


def describe(case, a, seen, q):
    """One answer and what the pods saw, with nothing volatile in it."""
    o = {"status": a.status if a.status is not None else "none"}
    if a.error:
        o["error"] = a.error
    if a.proto and a.proto != "HTTP/1.1":
        o["proto-client"] = a.proto
    if a.informational:
        o["informational"] = a.informational
    if a.tls:
        o["tls"] = {k: ([case.contract(x) for x in v] if isinstance(v, list) else case.contract(v)) for k, v in a.tls.items()}
    o["headers"] = header_map(case, a.headers, {"date", "echo-pod"})
    if a.trailers:
        o["trailers"] = header_map(case, a.trailers)
    heads = {k.lower(): v for k, v in a.headers}
    body = a.body
    if q["http"] == "grpc" or ("echo-pod" in heads and body[:7] == b'{"pod":'):
        o["body"] = "${REPORT}"
    elif body:
        text = case.contract(normal(body.decode("utf-8", "replace")))
        o["body"] = text if len(text) <= 600 or "body" in (q.get("expect") or {}) else text[:40] + f"...({len(body)} bytes, sha256 {hashlib.sha256(body).hexdigest()[:16]})"
    if body:
        o["body-length"] = len(body)
    if a.frames:
        o["frames"] = ["${REPORT}" if f[:7] == '{"pod":' else f for f in a.frames]
    if a.extra:
        o["more"] = [x if isinstance(x, str) else describe(case, x, [], q) for x in a.extra]
    seen.sort(key=lambda r: r["time"])
    for role in ("echo", "auth", "errors", "mirror"):
        l = [r for r in seen if r["role"] == role]
        if not l:
            continue
        o[role] = [seen_entry(case, r) for r in l]
    return o


def seen_entry(case, r):
    e = {"pod": r["pod"], "method": r["method"], "target": case.contract(normal(r["target"])), "proto": r["proto"],
         "headers": header_map(case, r["headers"], {"x-corpus-id"})}
    for n, vs in e["headers"].items():      # a client certificate differs from run to run
        e["headers"][n] = ["${PEM}" if "BEGIN%20CERTIFICATE" in v else v for v in vs]
    if r["pod"] in case.owner:
        e["service"] = case.owner[r["pod"]]
    if r["port"] != 8080:
        e["port"] = r["port"]
    if r["body_len"]:
        e["body-length"] = r["body_len"]
        if r["body_len"] <= 512:
            e["body"] = case.contract(r["body"])
        else:
            e["body-sha"] = r["body_sha256"][:16]
    if r.get("chunked"):
        e["chunked"] = True
    if r.get("tls"):
        t = r["tls"]
        e["tls"] = {"version": t["version"], "cipher": t["cipher"], "sni": case.contract(t["sni"]), "alpn": t["alpn"], "client": t.get("client") or []}
    if r.get("fcgi"):
        skip = {"REMOTE_PORT", "HTTP_X_CORPUS_ID", "SERVER_SOFTWARE"}
        e["fcgi"] = {k: case.contract(normal(v)) for k, v in r["fcgi"] if k not in skip}
    return e


def find(headers, name):
    n = "-".join(w.capitalize() for w in name.split("-"))
    return (headers or {}).get(n)


def aspect(o, name):
    """The value of one aspect of an observation (FORMAT.md lists them)."""
    if "." in name and name.split(".")[0] in ("auth", "errors", "mirror", "echo", "first"):
        role, _, rest = name.partition(".")
        l = o.get("echo" if role == "first" else role) or []
        if rest == "count":
            return len(l)
        e = (l[0] if role == "first" else l[-1]) if l else None
        return entry_aspect(e, rest)
    if name.startswith("h:"):
        return find(o.get("headers"), name[2:])
    if name.startswith("t:"):
        return find(o.get("trailers"), name[2:])
    if name == "headers":
        return {k: v for k, v in (o.get("headers") or {}).items() if k.lower() not in UNCOMPARED}
    if name == "backend":
        l = o.get("echo") or []
        if l:
            return l[-1].get("service", l[-1]["pod"])
        return None
    if name == "pods":
        return [e["pod"] for e in o.get("echo") or []]
    if name == "tries":
        return len(o.get("echo") or [])
    if name in ("status", "error", "body", "body-length", "frames", "proto-client", "informational"):
        return o.get(name)
    if name == "more":
        return [x if isinstance(x, str) else x.get("status") for x in o.get("more") or []]
    if name == "cert":
        t = o.get("tls")
        return t and {"cn": t["cn"], "sans": t["sans"], "issuer": t["issuer"]}
    if name in ("tls-version", "cipher", "alpn"):
        return (o.get("tls") or {}).get({"tls-version": "version"}.get(name, name))
    l = o.get("echo") or []
    return entry_aspect(l[-1] if l else None, name)


def entry_aspect(e, name):
    if e is None:
        return None
    if name.startswith(("b:", "h:")):
        return find(e["headers"], name[2:])
    if name.startswith("fcgi:"):
        return (e.get("fcgi") or {}).get(name[5:])
    if name == "b-headers":
        return {k: v for k, v in e["headers"].items() if k.lower() not in ("content-length", "transfer-encoding")}
    if name == "sent-body":
        return [e.get("body-length", 0), e.get("body-sha") or e.get("body")]
    if name.startswith("tls-"):
        return (e.get("tls") or {}).get(name[4:])
    if name == "chunked":
        return e.get("chunked", False)
    return e.get(name)


def matches(want, got):
    """A literal, or a matcher: {re}, {contains}, {not}, {any-of}, {min,max}, {absent}, {present}."""
    if isinstance(want, dict) and want and set(want) <= {"re", "contains", "not", "any-of", "min", "max", "absent", "present", "not-re", "lacks"}:
        one = got[0] if isinstance(got, list) and len(got) == 1 else got
        for k, v in want.items():
            ok = {"re": lambda: one is not None and re.search(v, str(one), re.S) is not None,
                  "not-re": lambda: one is None or re.search(v, str(one), re.S) is None,
                  "contains": lambda: one is not None and (v in one if isinstance(one, (str, dict)) else any(v in str(x) for x in one) if isinstance(one, list) else v in str(one)),
                  "lacks": lambda: one is None or v not in (one if isinstance(one, (str, list, dict)) else str(one)),
                  "not": lambda: not matches(v, got),
                  "any-of": lambda: any(matches(x, got) for x in v),
                  "min": lambda: isinstance(one, (int, float)) and one >= v,
                  "max": lambda: isinstance(one, (int, float)) and one <= v,
                  "absent": lambda: (got is None) == v,
                  "present": lambda: (got is not None) == v}[k]()
            if not ok:
                return False
        return True
    if isinstance(got, list) and len(got) == 1 and not isinstance(want, list):
        got = got[0]
    if isinstance(got, list) and isinstance(want, list):
        return got == want
    return got == want


# ---------------------------------------------------------------- requesting

def full(case, q, fixture):
    q = case.expand(copy.deepcopy(q), fixture)
    q.setdefault("method", "GET")
    q.setdefault("scheme", "http")
    q.setdefault("host", case.host)
    q.setdefault("path", "/")
    q.setdefault("http", "1.1")
    q["http"] = str(q["http"])
    q.setdefault("timeout", 20)
    q.setdefault("client", CLIENT)
    q.setdefault("id", "raw" not in q or "${ID}" in q.get("raw", ""))
    h = q.get("headers") or []
    if isinstance(h, dict):
        h = [(k, v) for k, vs in h.items() for v in (vs if isinstance(vs, list) else [vs])]
    h = [tuple(map(str, x)) for x in h]
    for k, n in (("echo", "Echo"), ("auth-does", "Auth"), ("errors-do", "Errors")):
        if k in q:
            h.append((n, json.dumps(q[k], separators=(",", ":"))))
    if "websocket" in q:
        h += [("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Version", "13"), ("Sec-WebSocket-Key", "Y29ycHVzLWNvcnB1cy1jb3I=")]
    if "cookies-from" in q:
        jar = []
        for n in (q["cookies-from"] if isinstance(q["cookies-from"], list) else [q["cookies-from"]]):
            jar += case.jar.get(n, [])
        if jar:
            h.append(("Cookie", "; ".join(jar)))
    q["headers"] = h
    if "sni" not in q:
        q["sni"] = re.sub(r":\d+$", "", q["host"] or "")
    ip, _, port = (ARGS.https if q["scheme"] == "https" else ARGS.http).rpartition(":")
    q["address"] = (q.get("ip", ip), int(q.get("port", port)))
    cfg = case.doc.get("controller-config") or {}
    if str(cfg.get("use-proxy-protocol")) == "true" and "proxy-protocol" not in q and "port" not in q:
        q["proxy-protocol"] = f"PROXY TCP4 {q['client']} {ip} 40000 {q['address'][1]}"
    return q


def fire_one(case, q, fixture):
    rid = "%032x" % random.getrandbits(128)
    rid = "x" + rid[1:]
    a = send(q, rid, fixture)
    seen = fetch_seen(rid) if q["id"] else []
    want = [r for r in ("mirror",) if any(str(x).startswith(r + ".") for x in list(q.get("check") or []) + list(q.get("expect") or {}))]
    t = time.time()
    while want and time.time() - t < 1.5 and not any(r["role"] in want for r in seen):
        time.sleep(0.1)
        seen = fetch_seen(rid)
    if want:
        time.sleep(0.3)
        seen = fetch_seen(rid)
    return a, seen


def fire(case, q0, fixture):
    """Sends a request (or a series) and gives the observation."""
    q = full(case, q0, fixture)
    if q.get("pause"):
        time.sleep(q["pause"])
    n = int(q.get("repeat", 1))
    par = int(q.get("parallel", 1))
    if n == 1 and par == 1:
        a, seen = fire_one(case, q, fixture)
        o = describe(case, a, seen, q)
        o["time"] = round(a.time, 2)
        o["head-time"] = a.head_time and round(a.head_time, 2)
        o["_answer"] = a
        return o
    results = []
    if par > 1:
        with ThreadPoolExecutor(par) as ex:
            results = list(ex.map(lambda _: fire_one(case, q, fixture), range(par)))
    else:
        for _ in range(n):
            results.append(fire_one(case, q, fixture))
            if q.get("interval"):
                time.sleep(q["interval"])
    obs = [describe(case, a, seen, q) for a, seen in results]
    o = {"series": len(obs), "statuses": counts(x["status"] for x in obs), "backends": counts(aspect(x, "backend") for x in obs),
         "pods": counts((aspect(x, "pods") or [None])[-1] for x in obs), "tries": counts(aspect(x, "tries") for x in obs),
         "auth-calls": sum(aspect(x, "auth.count") for x in obs),
         "connections": len({r["conn"] for _, seen in results for r in seen if r["role"] == "echo"}), "time": round(max(a.time for a, _ in results), 2)}
    for name in q.get("each") or []:
        o.setdefault("each", {})[name] = counts(json.dumps(aspect(x, name)) for x in obs)
    o["_answer"] = results[-1][0]
    return o


def counts(it):
    c = collections.Counter(str(x) for x in it)
    return {k: c[k] for k in sorted(c)}


def remember(case, q, o):
    a = o.pop("_answer", None)
    if a is None:
        return
    if q.get("name"):
        jar = []
        for k, v in a.headers:
            if k.lower() == "set-cookie":
                jar.append(v.split(";")[0])
        case.jar[q["name"]] = jar
        if "series" not in o:
            p = aspect(o, "pods")
            case.pods_of[q["name"]] = p[-1] if p else None


# ------------------------------------------------------------------- judging

def judge(case, q, o):
    """Gives the list of what is wrong with an observation, empty if nothing is."""
    wrong = compare(case, q, o, q.get("expect") or {}, True)
    if wrong and q.get("better"):
        bs = q["better"] if isinstance(q["better"], list) else [q["better"]]
        for b in bs:
            if not compare(case, q, o, b, False):
                case.by_better += 1
                return []
    return wrong


def compare(case, q, o, expect, recorded):
    wrong = []

    def say(what, want, got):
        wrong.append(f"{what}: want {json.dumps(want)[:300]}, got {json.dumps(got)[:300]}")

    for name, want in expect.items():
        if name == "why":
            continue
        want = case.expand(want) if name not in ("body",) else want
        if name == "distribution":
            got = o.get(want["by"]) or {}
            for k, (lo, hi) in want["values"].items():
                if not lo <= got.get(str(k), 0) <= hi:
                    say(f"{want['by']} {k}", [lo, hi], got.get(str(k), 0))
            if not want.get("others", False):
                for k in got:
                    if k not in {str(x) for x in want["values"]}:
                        say(f"{want['by']} {k}", 0, got[k])
        elif name == "one-pod":
            if (len(o.get("pods") or {}) == 1) != want:
                say("one pod for all", want, o.get("pods"))
        elif name == "pod-count":
            if not matches(want, len([p for p in o.get("pods") or {} if p != "None"])):
                say("number of pods", want, o.get("pods"))
        elif name == "same-pod-as":
            got = series_pods(o)
            if got != [case.pods_of.get(want)]:
                say("same pod as " + want, case.pods_of.get(want), got)
        elif name == "other-pod-than":
            got = series_pods(o)
            if case.pods_of.get(want) in got:
                say("other pod than " + want, case.pods_of.get(want), got)
        elif name in ("time", "head-time"):
            if not matches(want, o.get(name)):
                say(name, want, o.get(name))
        else:
            v = o.get(name) if name == "value" or "series" in o and name in o else aspect(o, name)
            # what is recorded holds placeholders, as observations do
            if not (matches(want, v) or matches(expect[name], v) or canon(name, want) == canon(name, v)):
                say(name, want, v)
    if recorded:
        rec = q.get("recorded")
        checks = q.get("check")
        if checks is None:
            checks = ["value"] if "object" in q else ["statuses"] if q.get("repeat") or q.get("parallel") else DEFAULT_CHECK
            if (q.get("repeat") or q.get("parallel")) and "expect" in q:
                checks = []
        if rec is None and not ARGS.record:
            if not expect:
                wrong.append("nothing recorded and nothing expected")
        elif rec is not None:
            for name in checks:
                if name in expect:
                    continue
                w = rec.get(name) if name == "value" or "series" in rec and name in rec else aspect(rec, name)
                g = o.get(name) if name == "value" or "series" in o and name in o else aspect(o, name)
                if canon(name, w) != canon(name, g):
                    say(name, w, g)
    return wrong


def canon(name, v):
    """Where order and blanks mean nothing they are not compared: attributes of cookies, headers that are lists."""
    if name == "headers":
        return {k: canon("h:" + k, x) for k, x in (v or {}).items()}
    n = name[2:].lower() if name.startswith(("h:", "b:")) else ""
    if not isinstance(v, list):
        return v
    if name == "value":
        return sorted(v, key=json.dumps)
    if n == "location":
        return [x + "/" if re.fullmatch(r"https?://[^/?#]+", x) else x for x in v]
    if n == "set-cookie":
        return [[p[0]] + sorted(re.sub("(?i)^samesite=.*|^[^=]+", lambda m: m.group().lower(), x) for x in p[1:]) for p in ([y.strip() for y in c.split(";")] for c in v)]
    if n in ("vary", "allow", "access-control-allow-methods", "access-control-allow-headers", "access-control-expose-headers"):
        return sorted(x.strip().lower() for l in v for x in l.split(","))
    return v


def series_pods(o):
    if "series" in o:
        return list(o["pods"])
    return aspect(o, "pods")[-1:] if aspect(o, "pods") else [None]


# -------------------------------------------------------------------- running

class Run:
    def __init__(self, cases):
        self.cases = cases
        self.api = API(ARGS.kubeconfig)
        self.fixture = Fixture()
        self.pool = ThreadPoolExecutor(8)
        self.flags = None
        self.config = None
        self.live_n = 0
        self.group = None
        self.config_objects = []

    def go(self):
        f = self.fixture
        f.network()
        specs = list(BASE_CERTS)
        for c in self.cases:
            for s in c.expand(c.doc.get("certs") or []):
                s = dict(s, name=c.slug + "/" + s["name"])
                s.setdefault("ca", "server-ca")
                if s.get("ca") == "self":
                    del s["ca"]
                elif any(x["name"] == s["ca"] for x in (c.doc.get("certs") or [])):
                    s["ca"] = c.slug + "/" + s["ca"]
                specs.append(s)
        f.make_certs(specs)
        f.start()
        try:
            self.live_ns()
            groups = collections.OrderedDict()
            for c in sorted(self.cases, key=lambda c: (c.key()[0], c.key()[1] != "{}", c.key()[1], c.key()[4], c.id)):
                groups.setdefault(c.key(), []).append(c)
            n = 0
            t0 = time.time()
            for k, cs in groups.items():
                for i in range(0, len(cs), ARGS.batch):
                    part = cs[i:i + ARGS.batch]
                    n += len(part)
                    t = time.time()
                    self.batch(part)
                    print(f"# {time.time() - t0:6.0f}s  {n}/{len(self.cases)} cases, this batch {len(part)} in {time.time() - t:.1f}s  flags={list(k[0])} config={k[1][:100]}", flush=True)
        finally:
            f.stop()
            if self.config not in (None, "{}"):
                self.set_config({})

    # -- the controller's own settings

    def live_ns(self):
        self.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "corpus-live"}})
        self.api.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "live", "namespace": "corpus-live"}, "spec": {"ports": [{"name": "http", "port": 80, "targetPort": 8080}]}})
        self.api.apply({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "metadata": {"name": "live-1", "namespace": "corpus-live", "labels": {"kubernetes.io/service-name": "live"}},
                        "addressType": "IPv4", "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}], "endpoints": [{"addresses": [PODS["p16"]], "conditions": {"ready": True}}]})
        s, l = self.api.call("GET", "/apis/networking.k8s.io/v1/namespaces/corpus-live/ingresses")
        for i in l.get("items", []):
            self.api.call("DELETE", "/apis/networking.k8s.io/v1/namespaces/corpus-live/ingresses/" + i["metadata"]["name"])

    def set_config(self, data):
        ns, name = ARGS.configmap.split("/")
        base = dict(x.split("=", 1) for x in ARGS.base_config)
        s, r = self.api.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": ns}, "data": {**base, **{k: str(v) for k, v in data.items()}}})
        if s >= 300:
            sys.exit(f"ConfigMap: {s} {r.get('message')}")
        self.config = json.dumps(data, sort_keys=True)

    def set_flags(self, flags):
        if self.flags == flags and not (ARGS.restart and self.flags is None):
            return
        if not ARGS.restart:
            if flags:
                print("# no --restart: cannot set flags", flags)
            self.flags = flags
            return
        self.flags = flags
        env = dict(os.environ, CORPUS_CERT_DIR=self.fixture.dir)
        flags = [x.replace("@CERTS@", ARGS.cert_dir or self.fixture.dir) for x in flags]
        for n in ("webhook",):
            for part, ext in (("crt", "tls.crt"), ("key", "tls.key")):
                with open(os.path.join(self.fixture.dir, n + "-" + ext), "w") as fh:
                    fh.write(self.fixture.certs[n][part])
                os.chmod(fh.name, 0o644)
        os.chmod(self.fixture.dir, 0o755)
        r = subprocess.run(ARGS.restart + " " + " ".join("'" + x + "'" for x in flags), shell=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env)
        if r.returncode:
            print("# restart command ended with", r.returncode)

    # -- one batch

    def batch(self, cases):
        c0 = cases[0]
        flags = c0.expand(c0.doc.get("flags") or [])
        config = c0.expand(c0.doc.get("controller-config") or {}, self.fixture)
        pre = [c0.prepare(o, self.fixture) for o in c0.doc.get("config-objects") or []]
        if pre or any(c.doc.get("config-objects") for c in cases):
            for ns in {o["metadata"]["namespace"] for o in pre if o["kind"] not in API.GLOBAL}:
                self.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ns}})
            for o in pre:
                s, r = self.api.apply(o)
                if s >= 300:
                    print("# config-objects:", s, r.get("message"))
        if c0.doc.get("webhook"):
            pre.append(self.webhook())
        if (c0.doc.get("live") or {}).get("never"):
            # What these cases do may freeze the controller in the state before: let that be a clean one.
            if self.config != "{}":
                self.set_config({})
            self.set_flags([])
            self.wait_live([(c0, None)], {}, plain=True)
        if self.config != json.dumps(config, sort_keys=True):
            self.set_config(config)
            if ARGS.restart_for_config:
                self.flags = None
        self.set_flags(flags)
        if c0.doc.get("webhook"):
            self.api.apply(pre[-1])
            time.sleep(1.5)
        try:
            alive = self.run_cases(cases)
        finally:
            self.clean(cases)
            for o in pre:
                self.api.delete(o)
        if c0.doc.get("restart-after"):
            self.set_config({})
            self.flags = None
        if not alive and len(cases) > 1:
            # One of them blocks all the others: find it.
            print(f"# batch of {len(cases)} is not taken over; trying its halves", flush=True)
            for part in (cases[:len(cases) // 2], cases[len(cases) // 2:]):
                ARGS.run_id = "%04x" % random.getrandbits(16)
                for c in part:
                    c.__dict__.update(Case(c.file).__dict__)
                self.batch(part)
            return
        for c in cases:
            self.report(c)

    def webhook(self):
        """The registration of the admission webhook that the flags of these cases switch on."""
        ca = base64.b64encode(self.fixture.certs["server-ca"]["crt"].encode()).decode()
        ip = ARGS.http.rpartition(":")[0]
        return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "corpus"},
                "webhooks": [{"name": "corpus.corpus.test", "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Fail", "timeoutSeconds": 10,
                              "namespaceSelector": {"matchLabels": {"corpus-webhook": "yes"}},
                              "clientConfig": {"url": f"https://{ip}:9443/networking/v1/ingresses", "caBundle": ca},
                              "rules": [{"apiGroups": ["networking.k8s.io"], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"], "resources": ["ingresses"]}]}]}

    def run_cases(self, cases):
        for c in cases:
            c.steps = c.expand_steps() if hasattr(c, "expand_steps") else steps_of(c)
        list(self.pool.map(lambda c: self.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": c.ns, "labels": {**c.expand(c.doc.get("namespace-labels") or {}), **({"corpus-webhook": "yes"} if c.doc.get("webhook") else {})}}}), cases))
        list(self.pool.map(self.apply_backends, cases))
        n = max(len(c.steps) for c in cases)
        for i in range(n):
            if not self.step([(c, c.steps[i]) for c in cases if i < len(c.steps)]) and len(cases) > 1:
                return False
        return True

    def apply_backends(self, c):
        for o in c.backend_objects(self.fixture):
            self.apply(c, o)

    def apply(self, c, o):
        s, r = self.api.apply(o)
        if s >= 300:
            c.failures.append(f"apply {o['kind']} {o['metadata']['name']}: {s} {r.get('message')}")
        c.applied.append(o)

    def step(self, items):
        waves = max((len(s.get("apply") or []) for _, s in items), default=0)
        any_change = False
        during = [threading.Thread(target=self.requests, args=(c, {"requests": s["during"]})) for c, s in items if s.get("during")]
        for t in during:
            t.start()
        if during:
            time.sleep(0.5)
        for w in range(waves):
            todo = [(c, s["apply"][w]) for c, s in items if w < len(s.get("apply") or [])]
            if w:
                time.sleep(1.3)
            # What Ingresses refer to comes first, so that no controller sees them without it.
            first = [(c, [o for o in objs if o.get("kind") != "Ingress"]) for c, objs in todo]
            list(self.pool.map(lambda x: self.wave(*x), first))
            if any(objs for _, objs in first):
                time.sleep(0.5)
            list(self.pool.map(lambda x: self.wave(*x), [(c, [o for o in objs if o.get("kind") == "Ingress"]) for c, objs in todo]))
            any_change = any_change or bool(todo)
        for c, s in items:
            for o in s.get("delete") or []:
                self.api.delete(c.prepare(o, self.fixture))
                any_change = True
        if any("config" in s for _, s in items):
            for c, s in items:
                if "config" in s:
                    self.set_config(c.expand(s["config"]))
                    self.config = None
            any_change = True
        if any("try" in s for _, s in items):
            for c, s in items:
                for q in s.get("try") or []:
                    self.attempt(c, q)
            any_change = any_change
        alive = True
        if any_change:
            live = {}
            for c, _ in items:
                live.update(c.doc.get("live") or {})
            alive = self.wait_live(items, live)
            if not alive and len(items) > 1:
                for t in during:
                    t.join()
                return False
        quick = [x for x in items if not x[0].doc.get("serial")]
        slow = [x for x in items if x[0].doc.get("serial")]
        list(self.pool.map(lambda x: self.requests(*x), quick))
        for x in slow:
            self.requests(*x)
        for t in during:
            t.join()
        return alive or len(items) == 1

    def wave(self, c, objs):
        for o in objs:
            self.apply(c, c.prepare(o, self.fixture))

    def attempt(self, c, q):
        """An object that the admission webhook may refuse."""
        o = c.prepare(q["object"], self.fixture)
        s, r = self.api.apply(o)
        obs = {"allowed": s < 300, "warnings": len(self.api.local.warnings)}
        if s >= 300:
            message = r.get("message") or ""
            if "denied the request" not in message:
                obs["refused-by"] = "the API server"
        else:
            c.applied.append(o)
            if q.get("remove", True):
                self.api.delete(o)
        rec = q.get("recorded")
        if ARGS.record:
            q["recorded"] = obs
        for k, v in (q.get("expect") or {}).items():
            if not matches(v, obs.get(k)):
                self.fail(c, q, [f"{k}: want {v}, got {obs.get(k)}"])
        if not ARGS.record and rec is not None:
            def same(want):
                return want.get("allowed") == obs["allowed"] and want.get("refused-by") == obs.get("refused-by")
            if not same(rec):
                if same(q.get("better") or {}):
                    c.by_better += 1
                else:
                    self.fail(c, q, [f"allowed: want {rec['allowed']}, got {obs['allowed']} {r.get('message', '')}"])

    def fail(self, c, q, wrong):
        n = q.get("name") or q.get("path") or "/"
        c.failures += [f"{n}: {w}" for w in wrong]

    def wait_live(self, items, live, plain=False):
        case = items[0][0]
        self.live_n += 1
        name = f"live-{ARGS.run_id}-{self.live_n}"
        host = name + "." + DOMAIN
        o = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": name, "namespace": "corpus-live", "annotations": live.get("annotations") or {}},
             "spec": {"ingressClassName": live.get("class", ARGS.ingress_class), "rules": [{"host": host, "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "live", "port": {"number": 80}}}}]}}]}}
        if live.get("never"):
            time.sleep(ARGS.settle + 4)
            return True
        self.api.apply(o)
        q = full(case, {"host": host, "client": live.get("client", CLIENT), "scheme": live.get("scheme", "http"), "timeout": 5, "headers": live.get("headers") or {}}, self.fixture)
        if plain:
            q["proxy-protocol"] = None
        t = time.time()
        good = 0
        alive = True
        while time.time() - t < ARGS.live_timeout:
            a = send(q, "x", self.fixture)
            good = good + 1 if a.status == live.get("status", 200) else 0
            if good == 3:
                break
            time.sleep(0.15)
        else:
            print(f"# not live after {ARGS.live_timeout}s: batch of {case.id} (last answer {a.status} {a.error or ''})", flush=True)
            alive = False
            if len(items) == 1 and not plain:
                case.failures.append("not live: the controller did not take these objects over")
        self.api.delete(o)
        if ARGS.settled and alive and subprocess.run(ARGS.settled, shell=True, stdin=subprocess.DEVNULL).returncode:
            print(f"# not settled: batch of {case.id}", flush=True)
        time.sleep(ARGS.settle)
        return alive

    def requests(self, c, s):
        for q in s.get("requests") or []:
            try:
                o = self.kube(c, q) if "object" in q else fire(c, q, self.fixture)
            except Exception as e:      # a runner fault is a failure of that case only
                self.fail(c, q, [f"runner: {type(e).__name__}: {e}"])
                continue
            if ARGS.check and not ("object" in q) and q.get("poll"):
                t = time.time()
                while judge(c, q, dict(o)) and time.time() - t < q["poll"]:
                    time.sleep(0.3)
                    o = fire(c, q, self.fixture)
            remember(c, q, o)
            c.results.append((q, o))
            if ARGS.record:
                q["recorded"] = compact(o, q)
                wrong = compare(c, q, o, q.get("expect") or {}, False)
                wrong = [w for w in wrong if not w.startswith("nothing recorded")]
            else:
                wrong = judge(c, q, o)
            if wrong:
                self.fail(c, q, wrong)

    def kube(self, c, q):
        """A look at an object: its status, or its Events."""
        o = c.prepare(q["object"], self.fixture)
        time.sleep(q.get("pause", 0))
        t = time.time()
        while True:
            if q.get("events"):
                ns = o["metadata"]["namespace"]
                _, l = self.api.call("GET", f"/api/v1/namespaces/{ns}/events?fieldSelector=involvedObject.name={o['metadata']['name']},involvedObject.kind={o['kind']}")
                got = {"reasons": sorted({e["type"] + " " + e["reason"] for e in l.get("items", [])})}
            else:
                _, got = self.api.get(o)
                got = {"status": got.get("status")}
            for part in (q.get("field") or "").split("."):
                if part and isinstance(got, dict):
                    got = got.get(part)
            if time.time() - t > q.get("poll", 0) or ("recorded" in q and got == q["recorded"].get("value")) or ("expect" in q and matches(q["expect"].get("value"), got)):
                return {"value": got}
            time.sleep(0.5)

    def clean(self, cases):
        def one(c):
            for o in reversed(c.applied):
                if o["kind"] in ("Ingress",) or o["kind"] in API.GLOBAL or o["metadata"]["namespace"] != c.ns:
                    self.api.delete(o)
            self.api.call("DELETE", "/api/v1/namespaces/" + c.ns)
        list(self.pool.map(one, cases))

    def report(self, c):
        if ARGS.record:
            save(c)
        if c.failures:
            for w in c.failures:
                print(f"FAIL {c.id}  {w}", flush=True)
        elif ARGS.verbose:
            print(f"ok   {c.id}")


def compact(o, q):
    """What is written down of an observation: no times, and a body only where it is compared."""
    drop = {"time", "head-time", "_answer"}
    if not any(n == "body" for n in list(q.get("check") or []) + list(q.get("expect") or {})):
        drop.add("body")
    if "body" not in (q.get("check") or []) and len(str(o.get("body"))) > 600:
        drop.add("body")
    if "connections" not in (q.get("expect") or {}):
        drop.add("connections")
    return {k: v for k, v in o.items() if k not in drop}


def steps_of(c):
    """objects + requests + then, as a list of steps; objects are cut into waves at `pause`."""
    d = c.doc

    def waves(objs):
        out = [[]]
        for o in objs or []:
            if o == "pause" or (isinstance(o, dict) and "pause" in o and "kind" not in o):
                out.append([])
            else:
                out[-1].append(o)
        return [w for w in out if w]

    out = [{"apply": waves(d.get("objects"))}]
    if d.get("try"):
        out.append({"try": d["try"]})
    out[-1]["requests"] = d.get("requests") or []
    for s in d.get("then") or []:
        s2 = dict(s)
        if "apply" in s:
            s2["apply"] = waves(s["apply"])
        out.append(s2)
    return out


class Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data):
        return True


def _str(d, s):
    return d.represent_scalar("tag:yaml.org,2002:str", s, style="|" if "\n" in s and not re.search(r"[ \t]\n|\r|[^\x09\x0a\x20-\x7e]", s) else None)


Dumper.add_representer(str, _str)


def _list(d, l):
    flow = all(not isinstance(x, (dict, list)) and len(str(x)) < 90 and "\n" not in str(x) for x in l) and sum(len(str(x)) for x in l) < 110
    return d.represent_sequence("tag:yaml.org,2002:seq", l, flow_style=flow)


Dumper.add_representer(list, _list)


def save(c):
    with open(c.file, "w") as f:
        yaml.dump(c.doc, f, Dumper=Dumper, sort_keys=False, width=150, allow_unicode=True)


def main():
    global ARGS
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("paths", nargs="+", help="case files or directories")
    p.add_argument("--kubeconfig", required=True)
    p.add_argument("--netns", type=int, help="pid whose network namespace to enter (that of the cluster); none = stay here")
    p.add_argument("--http", default="10.244.0.1:80", help="address of the controller, HTTP")
    p.add_argument("--https", default="10.244.0.1:443", help="address of the controller, HTTPS")
    p.add_argument("--configmap", default="ingress-nginx/ingress-nginx-controller")
    p.add_argument("--ingress-class", default="nginx")
    p.add_argument("--status-address", default="192.0.2.10", help="what the controller was told to publish")
    p.add_argument("--restart", help="command that (re)starts the controller; the flags of a case are appended; it returns when the controller is up")
    p.add_argument("--restart-for-config", action="store_true", help="use --restart after each change of the ConfigMap between cases too, where that is faster")
    p.add_argument("--settled", help="command that returns when the controller has taken over all that it was told")
    p.add_argument("--cert-dir", help="where the controller finds the files that the runner writes for the admission webhook (default: the directory itself, also in $CORPUS_CERT_DIR of the restart command)")
    p.add_argument("--base-config", action="append", default=["worker-processes=1"], help="KEY=VALUE that every ConfigMap gets")
    p.add_argument("--settle", type=float, default=2.5, help="seconds to wait after the probe is served")
    p.add_argument("--live-timeout", type=float, default=25)
    p.add_argument("--batch", type=int, default=250, help="cases applied at once")
    p.add_argument("--only", help="regular expression on case ids")
    p.add_argument("--echo-binary", help="built corpus-echo (default: build it)")
    p.add_argument("--json", help="write results there")
    p.add_argument("--verbose", action="store_true")
    p.add_argument("--retries", type=int, default=0, help="run failing cases again this many times")
    p.add_argument("--run-id", default="%04x" % random.getrandbits(16))
    g = p.add_mutually_exclusive_group(required=True)
    g.add_argument("--record", action="store_true")
    g.add_argument("--check", action="store_true")
    ARGS = p.parse_args()
    if ARGS.netns and os.environ.get("CORPUS_INNER") != "1":
        env = {k: v for k, v in os.environ.items() if k.lower() not in ("http_proxy", "https_proxy", "all_proxy")}
        os.execvpe("nsenter", ["nsenter", "-t", str(ARGS.netns), "--net", "--", sys.executable] + sys.argv, dict(env, CORPUS_INNER="1"))
    t0 = time.time()
    cases = load(ARGS.paths)
    cases = [c for c in cases if not (c.doc.get("unverified") and ARGS.check)]
    skipped = [] if ARGS.restart else [c for c in cases if c.doc.get("flags")]
    cases = [c for c in cases if c not in skipped]
    run = Run(cases)
    run.go()
    for n in range(ARGS.retries):
        bad = [c for c in cases if c.failures]
        if not bad or ARGS.record:
            break
        print(f"# retry {n + 1} of {len(bad)} cases", flush=True)
        again = []
        ARGS.run_id = "%04x" % random.getrandbits(16)
        for c in bad:
            d = Case(c.file)
            d.retried = True
            again.append(d)
        run2 = Run(again)
        run2.go()
        by = {c.id: c for c in again}
        cases = [by.get(c.id, c) for c in cases]
    failed = [c for c in cases if c.failures]
    areas = collections.OrderedDict()
    for c in cases:
        a = areas.setdefault(c.id.split("/")[0], [0, 0])
        a[1 if c.failures else 0] += 1
    if ARGS.json:
        with open(ARGS.json, "w") as f:
            json.dump({"passed": len(cases) - len(failed), "failed": len(failed), "skipped": len(skipped), "seconds": round(time.time() - t0),
                       "areas": {a: {"passed": x, "failed": y} for a, (x, y) in areas.items()},
                       "cases": [{"id": c.id, "result": "failed" if c.failures else "passed", **({"retried": True} if getattr(c, "retried", False) else {}),
                                  **({"better": c.by_better} if c.by_better else {}), **({"failures": c.failures} if c.failures else {})} for c in cases]}, f, indent=1)
            f.write("\n")
    print(f"{len(cases) - len(failed)} passed, {len(failed)} failed" + (f" ({sum(c.by_better for c in cases)} requests by their better answer)" if any(c.by_better for c in cases) else "") + (f", {len(skipped)} skipped (they need flags, and there is no --restart)" if skipped else "") + f", {time.time() - t0:.0f} s")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
