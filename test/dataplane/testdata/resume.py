"""A TLS client that resumes sessions wherever it is told to.

    resume.py PORT id|ticket MAKE RESUME...

Makes a session of TLS 1.2 under the name MAKE, by an id that the server keeps
or by a ticket, and tries to resume it under each name RESUME. Prints yes or no
for each. Go's client knows no sessions by id.
"""
import socket
import ssl
import sys

port, kind, make, resume = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
context.maximum_version = ssl.TLSVersion.TLSv1_2
if kind == "id":
    context.options |= ssl.OP_NO_TICKET


def shake(name, session=None):
    with socket.create_connection(("127.0.0.1", port), timeout=30) as plain:
        with context.wrap_socket(plain, server_hostname=name, session=session) as connection:
            if session is None and connection.session.has_ticket != (kind == "ticket"):
                sys.exit("the session is of another kind")
            return connection.session, connection.session_reused


session, _ = shake(make)
for name in resume:
    print("yes" if shake(name, session)[1] else "no")
