"""An application on the C SDK: enrolls, logs in by certificate, tells the service that it got, dials until stdin ends.

Arguments: file of the enrollment token, file for the identity, name of the service, host and port of its intercept.
"""

import ctypes
import json
import os
import sys
import threading

import openziti
from openziti import zitilib

token, identity, service, host, port = sys.argv[1:]


def service_as_received(context):
    """The service as JSON, with all that the SDK understood of it."""
    library = zitilib.ziti
    on_service = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
    library.ziti_service_available.argtypes = [ctypes.c_void_p, ctypes.c_char_p, on_service, ctypes.c_void_p]
    library.ziti_service_to_json.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    library.ziti_service_to_json.restype = ctypes.c_char_p
    received = []

    # Called before `ziti_service_available` returns when the service is one of those received at login.
    @on_service
    def tell(_context, found, status, _data):
        received.append(json.loads(library.ziti_service_to_json(found, 0, None)) if status == 0 else status)

    library.ziti_service_available(context, service.encode(), tell, None)
    if not received or isinstance(received[0], int):
        sys.exit(f'service {service} was not received: {received}')
    return received[0]


def dial():
    try:
        context.connect((host, int(port)))
    except Exception as err:  # no router is there to take it
        print(err, file=sys.stderr)


with open(identity, 'w', encoding='utf-8') as file:
    file.write(openziti.enroll(token))
context = openziti.load(identity)
print(json.dumps({'sdk': zitilib.version().version.decode(), 'service': service_as_received(context._ctx)}), flush=True)

threading.Thread(target=dial, daemon=True).start()
sys.stdin.read()
os._exit(0)  # the dial would go on until its own limit
