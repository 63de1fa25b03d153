"""Succeeds while the session lives that the run has asked with."""

import sys

import requests

url, ca, token = sys.argv[1:]
answer = requests.get(
    f"{url}/edge/management/v1/current-api-session", headers={"zt-session": token}, verify=ca, timeout=10
)
sys.exit(0 if answer.status_code == 200 else 1)
