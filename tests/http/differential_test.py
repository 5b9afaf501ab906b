"""differential_test.py ECHO [ROUNDS]: sends requests of a grammar, and such requests with a byte changed, to pirn's
server, to nginx and to Go's net/http, ROUNDS of each random kind.

If pirn accepts a request that another server refuses or understands differently, the difference has its reason in
REASONS, or is an error. Requests are smuggled where one server sees one request and the next server sees two."""

import random
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
MARKER = b"GET /marker HTTP/1.1\r\nHost: marker\r\nConnection: close\r\n\r\n"

# The server that differs, the difference, the requests, and the reason why pirn is right. Each entry must occur.
OF_FIELD = rb"(?:^|\n)(?:Host|Content-Length|Transfer-Encoding):"
REASONS = [
    ("nginx", "refused marker", rb"^(\r\n)*[^ ]*[^A-Z_\r\n -][^ ]* ", "a method is any token (RFC 9110, 9.1), and the handler's business"),
    ("nginx", "refused", rb"^[^ ]* [^ ]*/\.\.", "what a path means is the handler's business: static_files refuses to leave its folder"),
    ("nginx", "refused", rb"^[^ ]* [^ ?]*%(00|(?![0-9a-fA-F]{2}))", "what a path means is the handler's business: static_files refuses it"),
    ("go", "refused", rb"^[^ ]* [^ ?]*%(?![0-9a-fA-F]{2})", "what a path means is the handler's business: static_files refuses it"),
    ("nginx", "refused", rb"^[^ ]* https?://[^/? ]*[^a-zA-Z0-9.:/? -]", "a host is a name of RFC 3986, which may have such characters"),
    ("go", "refused", rb"^[^ ]* https?://[^/? ]*%[0-9a-f]{2}", "a host is a name of RFC 3986, which may have escapes"),
    ("nginx", "refused", rb"\nHost:[ \t]*\r\n", "where there is no host an empty one is sent (RFC 9112, 3.2)"),
    ("nginx", "refused", rb"\nHost: [^\r]*\.\.", "a name of RFC 3986 may have any number of dots"),
    ("nginx", "refused", rb"\nHost: \.\r\n", "a name of RFC 3986 may have any number of dots"),
    ("nginx", "refused", OF_FIELD + rb"[^\r\n]*\t", "tabs are blanks too (RFC 9110, 5.6.3)"),
    ("nginx", "marker", rb"\nConnection: [^\r\n]*(xclose|close\w)", "an option is a whole token"),
    ("nginx", "refused", rb"\nIf-Match: ", "conditions are the handler's business"),
    ("nginx", "refused", rb"^(\r\n)*OPTIONS \* ", "the asterisk is for OPTIONS (RFC 9112, 3.2.4)"),
    ("nginx", "target", rb"^OPTIONS http://b HTTP", "a target without a path is the whole server (RFC 9112, 3.2.4)"),
    ("go", "refused", rb" HTTP/1\.0\r\n.*\nExpect: ", "what HTTP/1.0 expects is ignored (RFC 9110, 10.1.1)"),
    ("go", "refused marker", rb"^(\r\n)+|\r\n\r\n\r\n$", "empty lines before a request are to be passed over (RFC 9112, 2.2)"),
    ("go", "refused", rb"\n0{4}[0-9a-f]{13,}\r\n", "a size has any number of digits (RFC 9112, 7.1); how many bytes surround the data has a limit"),
    ("go", "refused", rb"\n[0-9a-fA-F]+[ \t]+;", "blanks before a semicolon are to be passed over (RFC 9112, 7.1.1)"),
]


# --- the grammar --------------------------------------------------------------------------------------------------
METHODS = [b"GET", b"POST", b"PUT", b"DELETE", b"PATCH", b"OPTIONS", b"CONNECT", b"PRI", b"M-SEARCH", b"get", b"", b"G(T",
           b"G\x00T", b"G\xc3T", b"GET:", b"\tGET", b" GET", b"\r\nGET", b"\nGET", b"\rGET", b"\r\n\r\nGET"]
TARGETS = [b"/", b"/a?b=c", b"/a%20b", b"/%zz", b"/%2", b"/%00", b"/a/../b", b"/../a", b"//a", b"/./a", b"/a;b", b"/?a?b", b"/?%zz",
           b"/#a", b"/a\"b", b"/a<b", b"/a>b", b"/a\\b", b"/a^b", b"/a`b", b"/a{b}", b"/a|b", b"/[a]", b"/a\x7fb", b"/a\x80",
           b"/\xc3\xa4", b"/\xff", b"/?\x80", b"/a\x00b", b"/a\x01b", b"/a\tb", b"/a b", b"/a\rb", b"/a\nb", b"", b"*", b"**", b"/*",
           b"x", b"a:80", b"a:1", b"[::1]:80", b"?x", b"%2f", b"http://b/a", b"http://b", b"http://b?x", b"http://b:80/a",
           b"http://b:/a", b"HTTP://B/a", b"https://b/a", b"http://[::1]/a", b"http://[::1]:80/a", b"http://b/a?http://c/",
           b"http:///a", b"http://", b"http:/b/a", b"http:b", b"http://u@b/a", b"http://u:p@b/a", b"http://<>/a", b"http://b:x/a",
           b"http://b:99999/a", b"http://[::1/a", b"http://[b]/a", b"http://%zz/a", b"http://%41/a", b"http://b c/a", b"http://b#a",
           b"http://\xc3\xa4/a", b"http://b_c/a", b"http://b,c/a", b"ftp://b/a", b"://b/a", b"1://b/a", b"/http://b/a"]
VERSIONS = [b"HTTP/1.1", b"HTTP/1.0", b"HTTP/1.2", b"HTTP/2.0", b"HTTP/0.9", b"HTTP/1", b"HTTP/1.10", b"HTTP/01.1", b"HTTP/1.1 ",
            b"HTTP/1.1\t", b"http/1.1", b"HTTP 1.1", b"HTTPS/1.1", b"HTTP/11", b"HTTP/1,1", b"", b"HTTP/1.1 x", b"HTTP/9.9"]
GAPS = [b" ", b"  ", b"\t", b"", b" \t", b"\x0b", b"\x0c", b"\x00"]
ENDS = [b"\r\n", b"\n", b"\r", b"\r\r\n", b"\n\r", b" \r\n", b"\x00\r\n", b"\r\n ", b"\r\n\t"]
HOSTS = [b"Host: h\r\n", b"", b"Host:\r\n", b"Host: \r\n", b"Host: h\r\nHost: h\r\n", b"Host: h\r\nHost: i\r\n", b"host: h\r\n",
         b"Host : h\r\n", b" Host: h\r\n", b"Host:\th\t\r\n", b"Host:h\r\n", b"Host: h:80\r\n", b"Host: h:\r\n", b"Host: h:x\r\n",
         b"Host: h:99999\r\n", b"Host: h:1:2\r\n", b"Host: [::1]\r\n", b"Host: [::1]:80\r\n", b"Host: [::1\r\n", b"Host: [h]\r\n",
         b"Host: []\r\n", b"Host: ::1\r\n", b"Host: u@h\r\n", b"Host: h/a\r\n", b"Host: h?a\r\n", b"Host: h#a\r\n", b"Host: %zz\r\n",
         b"Host: %41\r\n", b"Host: h i\r\n", b"Host: h,i\r\n", b"Host: h_i\r\n", b"Host: <h>\r\n", b"Host: \"h\"\r\n", b"Host: h\\i\r\n",
         b"Host: \xc3\xa4\r\n", b"Host: h\x00\r\n", b"Host: h\x7f\r\n", b"Host:\r\n h\r\n", b"Host:\r\n\th\r\n", b"Host: h\r\n i\r\n",
         b"Host: .\r\n", b"Host: h.\r\n", b"Host: h..i\r\n", b"Host: ..\r\n", b"Host: -\r\n", b"Host: *\r\n", b"Host: http://h/\r\n",
         b"Host: h;i\r\n", b"Host: (h)\r\n", b"Host: h!\r\n", b"Host: h'\r\n", b"Host: $h\r\n", b"Host: [v1.a]\r\n", b"Host: [::1]x\r\n"]
OTHERS = [b"", b"X: y\r\n", b"X:\r\n", b"X: \r\n", b"X:y\r\n", b"X: y \t\r\n", b"X : y\r\n", b"X\t: y\r\n", b"X\r\n", b": y\r\n", b" X: y\r\n",
          b"\tX: y\r\n", b"X: y\r\n z\r\n", b"X:\r\n z\r\n", b"X:\r\n\tz\r\n", b"X: y\r\n \r\n", b"X: \x00\r\n", b"X: \x01\r\n", b"X: \x7f\r\n",
          b"X: \x80\xff\r\n", b"X: \x0b\r\n", b"X: a\rb\r\n", b"X: a\nb\r\n", b"X: a\n", b"X: a\r", b"X: a\r\r\n", b"X(: y\r\n", b"X\x80: y\r\n",
          b"X\x00: y\r\n", b"X_Y: z\r\n", b"X.Y: z\r\n", b"X|Y: z\r\n", b"X\"Y: z\r\n", b"X/Y: z\r\n", b"X: \"a\r\n", b"Expect: 100-continue\r\n",
          b"Expect: x\r\n", b"Expect:\r\n", b"Upgrade: h2c\r\nConnection: upgrade\r\n", b"Connection: close\r\n", b"Connection: keep-alive\r\n",
          b"Connection: close, keep-alive\r\n", b"Connection: keep-alive, close\r\n", b"Connection: Close\r\n", b"Connection:\r\n",
          b"Connection: ,close\r\n", b"Connection: x\r\n", b"Connection: x y\r\n", b"Connection: \"close\"\r\n",
          b"Connection: keep-alive\r\nConnection: close\r\n", b"Connection: close\r\nConnection: keep-alive\r\n", b"Connection: xclose\r\n",
          b"Proxy-Connection: close\r\n", b"Proxy-Connection: keep-alive\r\n", b"Keep-Alive: timeout=1\r\n", b"Range: bytes=0-1\r\n",
          b"Cookie: a\r\nCookie: b\r\n", b"TE: trailers\r\n", b"Trailer: X\r\n", b"Content-Type: a\r\nContent-Type: b\r\n", b"If-Match: \"x\"\r\n"]
CHUNKED = b"Transfer-Encoding: chunked\r\n"
WHOLE = b"5\r\nhell(\r\n0\r\n\r\n"
LENGTHS = [b"5", b"0", b"", b" 5 ", b"\t5", b"+5", b"-5", b"-0", b"05", b"5 5", b"5,5", b"5, 5", b"5,", b",5", b"5;", b"0x5", b"5.0", b"5e0", b"\"5\"",
           b"\xd9\xa5", b"5\x00", b"\x0b5", b"4294967301", b"18446744073709551621", b"99999999999999999999", b"5\r\n ", b"\r\n 5", b"\r\n\t5",
           b"5\r\nContent-Length: 5", b"5\r\nContent-Length: 6", b"5\r\ncontent-length: 0", b"5\r\nContent-Length:"]
CODINGS = [b"chunked", b"Chunked", b"CHUNKED", b" chunked ", b"\tchunked\t", b"", b" ", b"identity", b"gzip", b"chunked, identity", b"identity, chunked",
           b"gzip, chunked", b"chunked, gzip", b"chunked, chunked", b"chunked,chunked", b",chunked", b"chunked,", b", chunked", b"chunked, ", b"\"chunked\"",
           b"'chunked'", b"chunked;a=b", b"chunked; a=b", b"chunked ;a", b"x chunked", b"chunked x", b"xchunked", b"chunkedx", b"chu nked", b"\x0bchunked",
           b"chunked\x0b", b"\x00chunked", b"chunked\x00", b"\r\n chunked", b"\r\n\tchunked", b"chunked\r\n ", b"chunked\r\n identity",
           b"chunked\r\nTransfer-Encoding: chunked", b"chunked\r\nTransfer-Encoding: identity", b"identity\r\nTransfer-Encoding: chunked",
           b"\r\nTransfer-Encoding: chunked", b"chunked\r\nTransfer-Encoding:", b"chunked\r\nContent-Length: 5", b"chunked\r\nContent-Length: 0",
           b"chunked\r\nContent-Length:", b"gzip\r\nContent-Length: 5", b"identity\r\nContent-Length: 5", b"\r\nContent-Length: 5", b"\xa0chunked",
           b"ch\xfcnked", b"chunked\xa0"]
NAMES = [b"Transfer-Encoding : chunked", b"Transfer-Encoding\t: chunked", b" Transfer-Encoding: chunked", b"transfer-encoding: chunked",
         b"Transfer_Encoding: chunked", b"Transfer-Encoding\x00: chunked", b"Transfer-Encoding\x80: chunked", b"X: y\rTransfer-Encoding: chunked",
         b"X: y\nTransfer-Encoding: chunked", b"Content-Length : 5", b"Content_Length: 5", b"Content-Length\x0b: 5", b"Content Length: 5",
         b"Transfer-Encoding chunked", b"Transfer-Encoding;: chunked", b"Transfer-Encoding=chunked"]
CHUNKS = [WHOLE, b"0\r\n\r\n", b"05\r\nhell(\r\n0\r\n\r\n", b"5\r\nhell(\r\n000\r\n\r\n", b"A\r\n0123456789\r\n0\r\n\r\n", b"a\r\n0123456789\r\n0\r\n\r\n",
          b"+5\r\nhell(\r\n0\r\n\r\n", b"-5\r\nhell(\r\n0\r\n\r\n", b"0x5\r\nhell(\r\n0\r\n\r\n", b" 5\r\nhell(\r\n0\r\n\r\n", b"5 \r\nhell(\r\n0\r\n\r\n",
          b"5\t\r\nhell(\r\n0\r\n\r\n", b"5\nhell(\r\n0\r\n\r\n", b"5\r\nhell(\n0\r\n\r\n", b"5\r\nhell(0\r\n\r\n", b"5\rhell(\r\n0\r\n\r\n",
          b"5\r\nhell(\r\n0\n\r\n", b"5\r\nhell(\r\n0\r\n\n", b"5\r\nhell(\r\n0\n\n", b"5\n\r\nhell(\r\n0\r\n\r\n", b"5\r\nhell(\r\n\r\n0\r\n\r\n",
          b"\r\n5\r\nhell(\r\n0\r\n\r\n", b"4\r\nhell(\r\n0\r\n\r\n", b"6\r\nhell(\r\n0\r\n\r\n", b"g\r\nhell(\r\n0\r\n\r\n", b"5g\r\nhell(\r\n0\r\n\r\n",
          b"5_0\r\nhell(\r\n0\r\n\r\n", b"100000000000000005\r\nhell(\r\n0\r\n\r\n", b"ffffffffffffffff\r\n", b"fffffffffffffffb\r\nhell(\r\n0\r\n\r\n",
          b"00000000000000000005\r\nhell(\r\n0\r\n\r\n", b"5;a\r\nhell(\r\n0\r\n\r\n", b"5;a=b\r\nhell(\r\n0\r\n\r\n", b"5;a=\"b\"\r\nhell(\r\n0\r\n\r\n",
          b"5;a=\"\\\"\"\r\nhell(\r\n0\r\n\r\n", b"5 ; a = b\r\nhell(\r\n0\r\n\r\n", b"5;a=\"\nxx\"\r\nhell(\r\n0\r\n\r\n", b"5;a=\"\x00\"\r\nhell(\r\n0\r\n\r\n",
          b"5;a=\"x\r\nhell(\r\n0\r\n\r\n", b"5;a=\"\r\n\"\r\nhell(\r\n0\r\n\r\n", b"5;a=\"\\\n\"\r\nhell(\r\n0\r\n\r\n", b"5;a=x\"\r\nhell(\r\n0\r\n\r\n",
          b"5;\r\nhell(\r\n0\r\n\r\n", b"5;;\r\nhell(\r\n0\r\n\r\n", b"5;a=\r\nhell(\r\n0\r\n\r\n", b"5;=a\r\nhell(\r\n0\r\n\r\n", b"5;a\nb\r\nhell(\r\n0\r\n\r\n",
          b"5;a\rb\r\nhell(\r\n0\r\n\r\n", b"5;a\x00\r\nhell(\r\n0\r\n\r\n", b"5;a=\x01\r\nhell(\r\n0\r\n\r\n", b"5;a=\"\x7f\"\r\nhell(\r\n0\r\n\r\n",
          b"5;a=\"\xc3\xa4\"\r\nhell(\r\n0\r\n\r\n", b"5;a \r\nhell(\r\n0\r\n\r\n", b"5 a\r\nhell(\r\n0\r\n\r\n", b"5,a\r\nhell(\r\n0\r\n\r\n",
          b"5\r\nhell(\r\n0;a\r\n\r\n", b"5\r\nhell(\r\n0;a=\"x\r\n\r\n", b"5\r\nhell(\r\n0\r\nX: y\r\n\r\n", b"5\r\nhell(\r\n0\r\nX: y\r\n z\r\n\r\n",
          b"5\r\nhell(\r\n0\r\nX:\r\n z\r\n\r\n", b"5\r\nhell(\r\n0\r\nX\r\n\r\n", b"5\r\nhell(\r\n0\r\nX : y\r\n\r\n", b"5\r\nhell(\r\n0\r\n: y\r\n\r\n",
          b"5\r\nhell(\r\n0\r\nX: \x00\r\n\r\n", b"5\r\nhell(\r\n0\r\nX: y\n\r\n", b"5\r\nhell(\r\n0\r\nContent-Length: 5\r\n\r\n",
          b"5\r\nhell(\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n", b"5\r\nhell(\r\n0\r\nHost: i\r\n\r\n", b"5\r\nhell(\r\n0\r\n", b"5\r\nhell(\r\n",
          b"5\r\nhell(", b"5\r\nhel", b"5\r\n", b"5", b"", b"0\r\n", b"0", b"0\r\nX: " + b"y" * 20000 + b"\r\n\r\n", b"5;" + b"a" * 20000 + b"\r\nhell(\r\n0\r\n\r\n",
          b"1;aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\nx\r\n" * 1000 + b"0\r\n\r\n"]
FRAMINGS = ([(b"", b"")] + [(b"Content-Length:" + each + b"\r\n", b"hell(") for each in [b" " + l for l in LENGTHS] + [b"5"]] +
            [(b"Transfer-Encoding: " + each + b"\r\n", WHOLE) for each in CODINGS] + [(each + b"\r\n", WHOLE) for each in NAMES] +
            [(b"Transfer-Encoding:" + each + b"\r\n", WHOLE) for each in (b"chunked", b"\r\n chunked", b"\r\n\tchunked", b"\x0bchunked")] +
            [(b"Content-Length:" + each + b"\r\n", b"hell(") for each in (b"\r\n 5", b"\r\n\t5")] + [(CHUNKED, each) for each in CHUNKS])


@dataclass(frozen=True)
class Request:
    method: bytes = b"GET"
    gap: bytes = b" "
    target: bytes = b"/a"
    gap_behind: bytes = b" "
    version: bytes = b"HTTP/1.1"
    end: bytes = b"\r\n"
    host: bytes = b"Host: h\r\n"
    other: bytes = b""
    framing: tuple[bytes, bytes] = (b"", b"")
    last_end: bytes = b"\r\n"

    def text(self) -> bytes:
        return (self.method + self.gap + self.target + self.gap_behind + self.version + self.end + self.host + self.other + self.framing[0] +
                self.last_end + self.framing[1])


VARIANTS = {"method": METHODS, "gap": GAPS, "target": TARGETS, "gap_behind": GAPS, "version": VERSIONS, "end": ENDS, "host": HOSTS, "other": OTHERS,
            "framing": FRAMINGS, "last_end": ENDS}
BASES = [Request(), Request(method=b"POST", framing=(b"Content-Length: 5\r\n", b"hell(")), Request(method=b"POST", framing=(CHUNKED, WHOLE)),
         Request(version=b"HTTP/1.0", other=b"Connection: keep-alive\r\n"), Request(target=b"http://b/a"), Request(method=b"OPTIONS", target=b"*"),
         Request(method=b"POST", framing=(CHUNKED, b"5;a=\"b\\\"\" ; c=d\r\nhell(\r\n0;e\r\nX: y\r\n\r\n"))]
BYTES = [bytes([b]) for b in b"\x00\x01\x09\x0a\x0b\x0d\x20\x22\x2c\x3a\x3b\x3d\x7f\x80\xff0Z"] + [b"\r\n", b"\r\n ", b"\r\n\t"]


def variants() -> dict[bytes, tuple[str, object]]:
    """Returns each variant of each part of each base, and its difference from the base."""
    return {replace(base, **{part: value}).text(): (part, value) for base in BASES for part, values in VARIANTS.items() for value in values}


def changed(chance: random.Random, rounds: int) -> list[bytes]:
    """Returns bases with a byte removed, doubled, or preceded by another one."""
    found = []
    for base in BASES:
        text = base.text()
        for at in range(len(text)):
            found += [text[:at] + text[at + 1:], text[:at + 1] + text[at:]] + [text[:at] + each + text[at:] for each in BYTES]
    return chance.sample(found, min(rounds, len(found)))


def combined(chance: random.Random, rounds: int, taken: dict[str, list]) -> list[bytes]:
    """Returns requests with several variants each, of those that pirn accepts alone: with another one it would refuse
    the whole request."""
    return [replace(chance.choice(BASES), **{part: chance.choice(taken[part]) for part in chance.sample(sorted(taken), chance.choice([2, 3, 4]))}).text()
            for _ in range(rounds)]


# --- the servers --------------------------------------------------------------------------------------------------
@dataclass
class Answer:
    status: int = 0  # of the first answer; 0 for none
    method: bytes = b""
    target: bytes = b""
    authority: bytes = b""
    length: int = 0
    marker: bool = False  # whether the text behind it was taken for the next request


def ask(port: int, text: bytes) -> Answer:
    got = b""
    with socket.socket() as connection:
        connection.settimeout(20)
        connection.connect(("127.0.0.1", port))
        try:
            connection.sendall(text + MARKER)
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(65536):
                got += part
        except (ConnectionResetError, BrokenPipeError):
            pass
    while got.startswith(b"HTTP/1.1 100 "):
        got = got[got.find(b"\r\n\r\n") + 4:]
    answer = Answer()
    if match := re.match(rb"HTTP/1\.[01] (\d\d\d) ", got):
        answer.status = int(match[1])
        head, _, body = got.partition(b"\r\n\r\n")
        if answer.status == 200:
            lines = body.split(b"\n")
            answer.method, answer.target, answer.authority, answer.length = *lines[:3], int(lines[3] or 0)
            answer.marker = b"\n/marker\n" in body
    return answer


NGINX = """user root root; daemon off; worker_processes 1; pid {0}/pid; error_log {0}/error.log crit;
events {{ worker_connections 1000; }}
http {{
  access_log off; client_body_temp_path {0}/body; proxy_temp_path {0}/proxy; fastcgi_temp_path {0}/f; uwsgi_temp_path {0}/u; scgi_temp_path {0}/s;
  server {{
    listen 127.0.0.1:{1}; server_name none;
    # So that a body is read before the answer.
    location / {{ proxy_pass http://unix:{0}/behind; proxy_http_version 1.1; proxy_ignore_client_abort on; proxy_set_header Host $host; }}
  }}
  server {{ listen unix:{0}/behind; location / {{ return 200 "$request_method\\n$request_uri\\n$http_host\\n$content_length\\n"; }} }}
}}
"""


def wait_for(port: int) -> None:
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            subprocess.run(["sleep", "0.05"], check=True)
    sys.exit(f"nothing listens on {port}")


class Servers:
    def __init__(self, echo: str, nginx: str, go: str, folder: Path):
        # Next to the sources of pirn there may be an unrelated module or work space.
        # Not optimized: that takes a quarter off the time to compile Go's own library, which a fresh machine has not done.
        subprocess.run([go, "build", "-gcflags=all=-N -l", "-o", folder / "peer", HERE / "peer" / "main.go"], check=True, cwd=folder)
        self.ports = {}
        self.processes = []
        for name, command in (("pirn", [echo]), ("go", [folder / "peer"])):
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            self.processes.append(process)
            self.ports[name] = int(process.stdout.readline())
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.ports["nginx"] = probe.getsockname()[1]
        (folder / "nginx.conf").write_text(NGINX.format(folder, self.ports["nginx"]))
        self.nginx = subprocess.Popen([nginx, "-p", folder, "-c", folder / "nginx.conf"], stderr=subprocess.DEVNULL)
        wait_for(self.ports["nginx"])

    def end(self) -> None:
        for process in self.processes:
            process.stdin.close()
            assert process.wait(timeout=30) == 0
        self.nginx.terminate()
        self.nginx.wait(timeout=30)


# --- the comparison -----------------------------------------------------------------------------------------------
def differences(ours: Answer, theirs: Answer, peer: str) -> list[str]:
    if ours.status != 200:
        return []
    if theirs.status != 200:
        return ["refused"]
    found = [name for name in ("method", "length") if getattr(ours, name) != getattr(theirs, name)]
    if ours.marker and not theirs.marker:
        found.append("marker")
    if peer == "go":
        return found + (["authority"] if ours.authority != theirs.authority else [])
    return found + (["target"] if ours.target != theirs.target else [])


def main() -> None:
    nginx = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
    go = shutil.which("go") or shutil.which("/usr/local/go/bin/go")
    if not nginx or not go:
        print(f"skipped: there is no {'nginx' if not nginx else 'go'} to compare with")
        sys.exit(77)
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3000
    chance = random.Random(9112)
    asked = 0
    met: dict[tuple, int] = {}
    unexplained = []
    with tempfile.TemporaryDirectory() as folder:
        servers = Servers(sys.argv[1], nginx, go, Path(folder))

        def look(text: bytes) -> tuple[bytes, dict[str, Answer]]:
            ours = ask(servers.ports["pirn"], text)
            return text, {"pirn": ours, **({peer: ask(servers.ports[peer], text) for peer in ("nginx", "go")} if ours.status == 200 else {})}

        def compare(texts: list[bytes]) -> list[bytes]:
            """Returns the texts that pirn accepts."""
            nonlocal asked
            asked += len(texts)
            taken = []
            for text, answers in pool.map(look, texts):
                if answers["pirn"].status == 200:
                    taken.append(text)
                for peer in ("nginx", "go"):
                    for what in differences(answers["pirn"], answers.get(peer, Answer()), peer):
                        reasons = [each for each in REASONS if each[0] == peer and what in each[1].split() and re.search(each[2], text, re.S)]
                        if reasons:
                            met[reasons[0]] = met.get(reasons[0], 0) + 1
                        else:
                            unexplained.append((peer, what, text, answers))
            return taken

        with ThreadPoolExecutor(4) as pool:
            single = variants()
            taken: dict[str, list] = {}
            for text in compare(list(single)):
                part, value = single[text]
                taken.setdefault(part, []).append(value)
            compare(changed(chance, rounds))
            compare(combined(chance, rounds, taken))
        servers.end()
    for peer, what, text, answers in unexplained[:60]:
        print(f"{peer}: {what}: {text[:300]!r}\n    ours {answers['pirn']}\n    theirs {answers[peer]}")
    unmet = [each for each in REASONS if each not in met]
    for each in unmet:
        print(f"a reason that no request has: {each}")
    print(f"{asked} requests, {sum(met.values())} differences with a reason, {len(unexplained)} without one")
    sys.exit(1 if unexplained or unmet else 0)


main()
