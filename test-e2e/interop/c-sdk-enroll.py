"""An application on the C SDK. It performs the commands that stdin names, one after the other: to enroll, or to log in
with what an earlier enrollment has stored. Commands and answers are JSON lines. The end of stdin ends the program.
"""

import ctypes
import json
import os
import sys

import openziti
from openziti import zitilib


def receives(context, service):
    """Whether the SDK has received the service at login."""
    library = zitilib.ziti
    on_service = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
    library.ziti_service_available.argtypes = [ctypes.c_void_p, ctypes.c_char_p, on_service, ctypes.c_void_p]
    received = []
    tell = on_service(lambda _context, _service, status, _data: received.append(status))
    library.ziti_service_available(context, service.encode(), tell, None)
    return received == [0]


def perform(command):
    service, stored = command['service'], f'{command["token"]}.json'
    if command['action'] == 'enroll':
        files = [command[name].encode() if name in command else None for name in ['keyFile', 'certFile']]
        with open(stored, 'w', encoding='utf-8') as file:
            file.write(openziti.enroll(command['token'], *files))
    context = openziti.load(stored)
    return {'services': [service] if receives(context._ctx, service) else []}


for line in sys.stdin:
    try:
        answer = perform(json.loads(line))
    except Exception as err:
        answer = {'error': repr(err)}
    print(json.dumps(answer), flush=True)
os._exit(0)  # the SDK leaves threads behind
