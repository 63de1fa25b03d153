"""An application on the C SDK: hosts a service that echoes, or dials it.

Arguments: file of the enrollment token, file for the identity, "host" or "dial", name of the service. Events are JSON
lines on stdout, and commands are lines on stdin. The end of stdin ends the program.
"""

import hashlib
import json
import os
import socket
import sys
import threading

import openziti
from openziti import zitilib

CHUNK = 32 * 1024
token, identity, role, service = sys.argv[1:]


def tell(**event):
    print(json.dumps(event), flush=True)


def echo(connection):
    tell(event='accepted')
    count, error = 0, ''
    try:
        while data := connection.recv(CHUNK):
            count += len(data)
            connection.sendall(data)
    except OSError as err:
        error = str(err)
    tell(event='ended', bytes=count, error=error)
    connection.close()


def host():
    server = context.bind(service)
    server.listen()
    tell(event='ready')
    while True:
        connection, _ = server.accept()
        threading.Thread(target=echo, args=(connection,), daemon=True).start()


def connect():
    descriptor = zitilib.ziti_socket(socket.SOCK_STREAM)
    zitilib.connect(descriptor, context._ctx, service, '')  # ZitiContext.connect passes no terminator, which fails
    return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, descriptor)


def send(connection, count, digest):
    while count > 0:
        data = os.urandom(min(count, CHUNK))
        digest.update(data)
        count -= len(data)
        connection.sendall(data)


def receive(connection, count, digest):
    """Returns the number of bytes, which is lower if the connection ends."""
    received = 0
    while received < count:
        data = connection.recv(min(CHUNK, count - received))
        if not data:
            break
        received += len(data)
        digest.update(data)
    return received


def transfer(total, middle):
    """Sends bytes and receives their echo. In the middle it tells so, and waits for a command."""
    try:
        connection = connect()
    except Exception as err:
        return {'event': 'refused', 'error': str(err)}
    sent, received = hashlib.sha256(), hashlib.sha256()
    count = 0
    try:
        for part in [middle, total - middle]:
            if count > 0 and part > 0:
                tell(event='middle', bytes=count)
                sys.stdin.readline()
            sender = threading.Thread(target=send, args=(connection, part, sent), daemon=True)
            sender.start()
            arrived = receive(connection, part, received)
            count += arrived
            if arrived < part:
                return {'event': 'ended', 'bytes': count}
            sender.join()
    except OSError as err:
        return {'event': 'ended', 'bytes': count, 'error': str(err)}
    finally:
        connection.close()
    return {'event': 'done', 'bytes': count, 'sent': sent.hexdigest(), 'received': received.hexdigest()}


def until_stdin_ends():
    sys.stdin.read()
    os._exit(0)


with open(identity, 'w', encoding='utf-8') as file:
    file.write(openziti.enroll(token))
context = openziti.load(identity)
if role == 'host':
    threading.Thread(target=until_stdin_ends, daemon=True).start()
    host()
tell(event='ready')
while line := sys.stdin.readline():
    _, total, middle = line.split()
    tell(**transfer(int(total), int(middle)))
os._exit(0)
