import { json } from '../http/body.js'
import type { BodySpec } from '../http/exchange.js'

const text = (max: number, min = 0) => ({
  type: 'string',
  ...(min > 0 && { minLength: min }),
  maxLength: max,
})

export interface Login {
  readonly username?: string
  readonly password?: string
  readonly configTypes?: readonly string[]
  readonly envInfo?: object
  readonly sdkInfo?: object
}

export const login: BodySpec<Login> = json(
  'auth',
  {
    title: 'authenticate',
    type: 'object',
    properties: {
      configTypes: { type: 'array', maxItems: 500, items: text(4096) },
      envInfo: {
        type: 'object',
        properties: {
          arch: text(255),
          domain: text(253),
          hostname: text(253),
          os: text(255),
          osRelease: text(255),
          osVersion: text(255),
        },
      },
      password: text(100, 5),
      sdkInfo: {
        type: 'object',
        properties: {
          appId: text(255),
          appVersion: text(255),
          branch: text(255),
          revision: text(255),
          type: text(255),
          version: text(255),
        },
      },
      username: text(100, 4),
    },
  },
  false,
)
