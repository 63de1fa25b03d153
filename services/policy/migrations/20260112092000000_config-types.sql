-- Up Migration
-- The built-in config types. Their ids are fixed: exports and clients name them.

insert into config_type (id, name, schema) values
  ('f2dd2df0-9c04-4b84-a91e-71437ac229f1', 'ziti-tunneler-client.v1', $json$
{
  "type": "object",
  "additionalProperties": false,
  "required": ["hostname", "port"],
  "properties": {"hostname": {"type": "string"}, "port": {"type": "integer", "minimum": 0, "maximum": 65535}}
}
$json$),
  ('cea49285-6c07-42cf-9f52-09a9b115c783', 'ziti-tunneler-server.v1', $json$
{
  "type": "object",
  "additionalProperties": false,
  "required": ["hostname", "port"],
  "definitions": {
    "portNumber": {"type": "integer", "minimum": 0, "maximum": 65535},
    "duration": {
      "description": "a number with its unit, such as 5s",
      "type": "string",
      "pattern": "[0-9]+(h|m|s|ms)"
    },
    "action": {
      "description": "what follows when a check changes, or keeps, its state",
      "type": "object",
      "additionalProperties": false,
      "required": ["trigger", "action"],
      "properties": {
        "trigger": {"type": "string", "enum": ["fail", "pass", "change"]},
        "duration": {"$ref": "#/definitions/duration"},
        "consecutiveEvents": {"type": "integer", "minimum": 0, "maximum": 65535},
        "action": {
          "type": "string",
          "pattern": "(mark (un)?healthy|increase cost [0-9]+|decrease cost [0-9]+|send event)"
        }
      }
    },
    "actions": {"type": "array", "minItems": 1, "maxItems": 20, "items": {"$ref": "#/definitions/action"}},
    "portCheck": {
      "description": "healthy while the address accepts connections",
      "type": "object",
      "additionalProperties": false,
      "required": ["interval", "timeout", "address"],
      "properties": {
        "interval": {"$ref": "#/definitions/duration"},
        "timeout": {"$ref": "#/definitions/duration"},
        "address": {"type": "string"},
        "actions": {"$ref": "#/definitions/actions"}
      }
    },
    "portChecks": {"type": "array", "items": {"$ref": "#/definitions/portCheck"}},
    "httpCheck": {
      "description": "healthy while the URL answers as expected",
      "type": "object",
      "additionalProperties": false,
      "required": ["interval", "timeout", "url"],
      "properties": {
        "interval": {"$ref": "#/definitions/duration"},
        "timeout": {"$ref": "#/definitions/duration"},
        "url": {"type": "string"},
        "method": {"type": "string", "enum": ["GET", "PUT", "POST", "PATCH"]},
        "body": {"type": "string"},
        "expectStatus": {"type": "integer", "minimum": 100, "maximum": 599},
        "expectInBody": {"type": "string"},
        "actions": {"$ref": "#/definitions/actions"}
      }
    },
    "httpChecks": {"type": "array", "items": {"$ref": "#/definitions/httpCheck"}}
  },
  "properties": {
    "hostname": {"type": "string"},
    "port": {"$ref": "#/definitions/portNumber"},
    "protocol": {"type": ["string", "null"], "enum": ["tcp", "udp", null]},
    "portChecks": {"$ref": "#/definitions/portChecks"},
    "httpChecks": {"$ref": "#/definitions/httpChecks"}
  }
}
$json$),
  ('g7cIWbcGg', 'intercept.v1', $json$
{
  "type": "object",
  "additionalProperties": false,
  "required": ["protocols", "addresses", "portRanges"],
  "definitions": {
    "portNumber": {"type": "integer", "minimum": 0, "maximum": 65535},
    "portRange": {
      "description": "ports from low to high, both included",
      "type": "object",
      "additionalProperties": false,
      "required": ["low", "high"],
      "properties": {"low": {"$ref": "#/definitions/portNumber"}, "high": {"$ref": "#/definitions/portNumber"}}
    },
    "protocol": {"type": "string", "enum": ["tcp", "udp"]},
    "address": {
      "description": "a host name, which may begin with a wildcard, an IP address or a CIDR block",
      "type": "string",
      "format": "idn-hostname",
      "minLength": 1
    },
    "timeoutSeconds": {"type": "integer", "minimum": 0, "maximum": 2147483647}
  },
  "properties": {
    "protocols": {"type": "array", "minItems": 1, "uniqueItems": true, "items": {"$ref": "#/definitions/protocol"}},
    "addresses": {"type": "array", "minItems": 1, "uniqueItems": true, "items": {"$ref": "#/definitions/address"}},
    "portRanges": {"type": "array", "minItems": 1, "uniqueItems": true, "items": {"$ref": "#/definitions/portRange"}},
    "dialOptions": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "identity": {
          "description": "the terminator to dial; $dst_hostname, $dst_ip, $dst_port and their like are filled in",
          "type": "string"
        },
        "connectTimeoutSeconds": {"$ref": "#/definitions/timeoutSeconds"}
      }
    },
    "sourceIp": {
      "description": "the address that the host sees; $tunneler_id.name and its like are filled in",
      "type": "string"
    }
  }
}
$json$),
  ('NH5p4FpGR', 'host.v1', $json$
{
  "definitions": {
    "portNumber": {"type": "integer", "minimum": 0, "maximum": 65535},
    "duration": {
      "description": "a number with its unit, such as 5s",
      "type": "string",
      "pattern": "[0-9]+(h|m|s|ms)"
    },
    "action": {
      "description": "what follows when a check changes, or keeps, its state",
      "type": "object",
      "additionalProperties": false,
      "required": ["trigger", "action"],
      "properties": {
        "trigger": {"type": "string", "enum": ["fail", "pass", "change"]},
        "duration": {"$ref": "#/definitions/duration"},
        "consecutiveEvents": {"type": "integer", "minimum": 0, "maximum": 65535},
        "action": {
          "type": "string",
          "pattern": "(mark (un)?healthy|increase cost [0-9]+|decrease cost [0-9]+|send event)"
        }
      }
    },
    "actions": {"type": "array", "minItems": 1, "maxItems": 20, "items": {"$ref": "#/definitions/action"}},
    "portCheck": {
      "description": "healthy while the address accepts connections",
      "type": "object",
      "additionalProperties": false,
      "required": ["interval", "timeout", "address"],
      "properties": {
        "interval": {"$ref": "#/definitions/duration"},
        "timeout": {"$ref": "#/definitions/duration"},
        "address": {"type": "string"},
        "actions": {"$ref": "#/definitions/actions"}
      }
    },
    "portChecks": {"type": "array", "items": {"$ref": "#/definitions/portCheck"}},
    "httpCheck": {
      "description": "healthy while the URL answers as expected",
      "type": "object",
      "additionalProperties": false,
      "required": ["interval", "timeout", "url"],
      "properties": {
        "interval": {"$ref": "#/definitions/duration"},
        "timeout": {"$ref": "#/definitions/duration"},
        "url": {"type": "string"},
        "method": {"type": "string", "enum": ["GET", "PUT", "POST", "PATCH"]},
        "body": {"type": "string"},
        "expectStatus": {"type": "integer", "minimum": 100, "maximum": 599},
        "expectInBody": {"type": "string"},
        "actions": {"$ref": "#/definitions/actions"}
      }
    },
    "httpChecks": {"type": "array", "items": {"$ref": "#/definitions/httpCheck"}},
    "portRange": {
      "description": "ports from low to high, both included",
      "type": "object",
      "additionalProperties": false,
      "required": ["low", "high"],
      "properties": {"low": {"$ref": "#/definitions/portNumber"}, "high": {"$ref": "#/definitions/portNumber"}}
    },
    "protocol": {"type": "string", "enum": ["tcp", "udp"]},
    "address": {
      "description": "a host name, which may begin with a wildcard, an IP address or a CIDR block",
      "type": "string",
      "format": "idn-hostname",
      "minLength": 1
    },
    "timeoutSeconds": {"type": "integer", "minimum": 0, "maximum": 2147483647},
    "listenOptions": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "connectTimeoutSeconds": {"$ref": "#/definitions/timeoutSeconds"},
        "connectTimeout": {"$ref": "#/definitions/duration"},
        "maxConnections": {"type": "integer", "minimum": 1, "maximum": 65535},
        "identity": {"type": "string"},
        "bindUsingEdgeIdentity": {"type": "boolean"},
        "cost": {"type": "integer", "minimum": 0, "maximum": 65535},
        "precedence": {"type": "string", "enum": ["default", "required", "failed"]}
      }
    },
    "proxy": {
      "description": "how the host reaches the server",
      "type": "object",
      "additionalProperties": false,
      "required": ["type", "address"],
      "properties": {"type": {"type": "string", "enum": ["http"]}, "address": {"type": "string"}}
    }
  },
  "type": "object",
  "additionalProperties": false,
  "properties": {
    "protocol": {"$ref": "#/definitions/protocol"},
    "forwardProtocol": {"type": "boolean"},
    "allowedProtocols": {"type": "array", "minItems": 1, "uniqueItems": true, "items": {"$ref": "#/definitions/protocol"}},
    "address": {"$ref": "#/definitions/address"},
    "forwardAddress": {"type": "boolean"},
    "allowedAddresses": {"type": "array", "minItems": 1, "uniqueItems": true, "items": {"$ref": "#/definitions/address"}},
    "port": {"$ref": "#/definitions/portNumber"},
    "forwardPort": {"type": "boolean"},
    "allowedPortRanges": {"type": "array", "minItems": 1, "uniqueItems": true, "items": {"$ref": "#/definitions/portRange"}},
    "allowedSourceAddresses": {"type": "array", "minItems": 1, "uniqueItems": true, "items": {"$ref": "#/definitions/address"}},
    "listenOptions": {"$ref": "#/definitions/listenOptions"},
    "proxy": {"$ref": "#/definitions/proxy"},
    "portChecks": {"$ref": "#/definitions/portChecks"},
    "httpChecks": {"$ref": "#/definitions/httpChecks"}
  },
  "allOf": [
    {
      "if": {"required": ["forwardProtocol"], "properties": {"forwardProtocol": {"const": true}}},
      "then": {"required": ["allowedProtocols"]},
      "else": {"required": ["protocol"]}
    },
    {
      "if": {"required": ["forwardAddress"], "properties": {"forwardAddress": {"const": true}}},
      "then": {"required": ["allowedAddresses"]},
      "else": {"required": ["address"]}
    },
    {
      "if": {"required": ["forwardPort"], "properties": {"forwardPort": {"const": true}}},
      "then": {"required": ["allowedPortRanges"]},
      "else": {"required": ["port"]}
    }
  ]
}
$json$),
  ('host.v2', 'host.v2', $json$
{
  "type": "object",
  "additionalProperties": false,
  "required": ["terminators"],
  "definitions": {
    "portNumber": {"type": "integer", "minimum": 0, "maximum": 65535},
    "duration": {
      "description": "a number with its unit, such as 5s",
      "type": "string",
      "pattern": "[0-9]+(h|m|s|ms)"
    },
    "action": {
      "description": "what follows when a check changes, or keeps, its state",
      "type": "object",
      "additionalProperties": false,
      "required": ["trigger", "action"],
      "properties": {
        "trigger": {"type": "string", "enum": ["fail", "pass", "change"]},
        "duration": {"$ref": "#/definitions/duration"},
        "consecutiveEvents": {"type": "integer", "minimum": 0, "maximum": 65535},
        "action": {
          "type": "string",
          "pattern": "(mark (un)?healthy|increase cost [0-9]+|decrease cost [0-9]+|send event)"
        }
      }
    },
    "actions": {"type": "array", "minItems": 1, "maxItems": 20, "items": {"$ref": "#/definitions/action"}},
    "portCheck": {
      "description": "healthy while the address accepts connections",
      "type": "object",
      "additionalProperties": false,
      "required": ["interval", "timeout", "address"],
      "properties": {
        "interval": {"$ref": "#/definitions/duration"},
        "timeout": {"$ref": "#/definitions/duration"},
        "address": {"type": "string"},
        "actions": {"$ref": "#/definitions/actions"}
      }
    },
    "portChecks": {"type": "array", "items": {"$ref": "#/definitions/portCheck"}},
    "httpCheck": {
      "description": "healthy while the URL answers as expected",
      "type": "object",
      "additionalProperties": false,
      "required": ["interval", "timeout", "url"],
      "properties": {
        "interval": {"$ref": "#/definitions/duration"},
        "timeout": {"$ref": "#/definitions/duration"},
        "url": {"type": "string"},
        "method": {"type": "string", "enum": ["GET", "PUT", "POST", "PATCH"]},
        "body": {"type": "string"},
        "expectStatus": {"type": "integer", "minimum": 100, "maximum": 599},
        "expectInBody": {"type": "string"},
        "actions": {"$ref": "#/definitions/actions"}
      }
    },
    "httpChecks": {"type": "array", "items": {"$ref": "#/definitions/httpCheck"}},
    "portRange": {
      "description": "ports from low to high, both included",
      "type": "object",
      "additionalProperties": false,
      "required": ["low", "high"],
      "properties": {"low": {"$ref": "#/definitions/portNumber"}, "high": {"$ref": "#/definitions/portNumber"}}
    },
    "protocol": {"type": "string", "enum": ["tcp", "udp"]},
    "address": {
      "description": "a host name, which may begin with a wildcard, an IP address or a CIDR block",
      "type": "string",
      "format": "idn-hostname",
      "minLength": 1
    },
    "timeoutSeconds": {"type": "integer", "minimum": 0, "maximum": 2147483647},
    "listenOptions": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "connectTimeoutSeconds": {"$ref": "#/definitions/timeoutSeconds"},
        "connectTimeout": {"$ref": "#/definitions/duration"},
        "maxConnections": {"type": "integer", "minimum": 1, "maximum": 65535},
        "identity": {"type": "string"},
        "bindUsingEdgeIdentity": {"type": "boolean"},
        "cost": {"type": "integer", "minimum": 0, "maximum": 65535},
        "precedence": {"type": "string", "enum": ["default", "required", "failed"]}
      }
    },
    "proxy": {
      "description": "how the host reaches the server",
      "type": "object",
      "additionalProperties": false,
      "required": ["type", "address"],
      "properties": {"type": {"type": "string", "enum": ["http"]}, "address": {"type": "string"}}
    },
    "terminator": {
      "type": "object",
      "additionalProperties": false,
      "properties": {
        "protocol": {"$ref": "#/definitions/protocol"},
        "forwardProtocol": {"type": "boolean"},
        "allowedProtocols": {
          "type": "array",
          "minItems": 1,
          "uniqueItems": true,
          "items": {"$ref": "#/definitions/protocol"}
        },
        "address": {"$ref": "#/definitions/address"},
        "forwardAddress": {"type": "boolean"},
        "allowedAddresses": {"type": "array", "minItems": 1, "uniqueItems": true, "items": {"$ref": "#/definitions/address"}},
        "port": {"$ref": "#/definitions/portNumber"},
        "forwardPort": {"type": "boolean"},
        "allowedPortRanges": {
          "type": "array",
          "minItems": 1,
          "uniqueItems": true,
          "items": {"$ref": "#/definitions/portRange"}
        },
        "allowedSourceAddresses": {"type": "array", "minItems": 1, "uniqueItems": true, "items": {"$ref": "#/definitions/address"}},
        "listenOptions": {"$ref": "#/definitions/listenOptions"},
        "proxy": {"$ref": "#/definitions/proxy"},
        "portChecks": {"$ref": "#/definitions/portChecks"},
        "httpChecks": {"$ref": "#/definitions/httpChecks"}
      },
      "allOf": [
        {
          "if": {"required": ["forwardProtocol"], "properties": {"forwardProtocol": {"const": true}}},
          "then": {"required": ["allowedProtocols"]},
          "else": {"required": ["protocol"]}
        },
        {
          "if": {"required": ["forwardAddress"], "properties": {"forwardAddress": {"const": true}}},
          "then": {"required": ["allowedAddresses"]},
          "else": {"required": ["address"]}
        },
        {
          "if": {"required": ["forwardPort"], "properties": {"forwardPort": {"const": true}}},
          "then": {"required": ["allowedPortRanges"]},
          "else": {"required": ["port"]}
        }
      ]
    }
  },
  "properties": {"terminators": {"type": "array", "minItems": 1, "items": {"$ref": "#/definitions/terminator"}}}
}
$json$);
