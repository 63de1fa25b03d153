import { flag, type Members, named, object, oneOf, variable } from '@overlay/model/schema'
import type { Services } from '../clients/services.js'
import { detail } from '../http/answer.js'
import { json, jsonBytes } from '../http/body.js'
import { callContext } from '../http/calls.js'
import { type BodySpec, type RequestContext, takes } from '../http/exchange.js'
import { send } from '../http/send.js'
import type { Handlers } from './operations.js'
import { failedRequestSchema, postureDataSchema, postureResponseSchema } from './posture-schemas.js'

const text = (max: number) => ({ type: 'string', maxLength: max })
const texts = (most: number, max: number) => ({ type: 'array', maxItems: most, items: text(max) })
const processMembers = {
  path: text(4096),
  isRunning: flag,
  hash: text(255),
  signerFingerprints: texts(64, 255),
}

const answer = (title: string, typeId: string, always: Members, sometimes: Members = {}) =>
  named(
    `postureResponse${title}Create`,
    object({ id: text(255), typeId: oneOf(typeId), ...always }, sometimes),
  )

/** One report of an endpoint on itself. A check of several processes has one report for each. */
const response = variable('postureResponseCreate', 'typeId', [
  answer('OperatingSystem', 'OS', { type: text(255), version: text(255) }, { build: text(255) }),
  answer('Domain', 'DOMAIN', { domain: text(255) }),
  answer('MacAddress', 'MAC', { macAddresses: texts(256, 64) }),
  answer('Process', 'PROCESS', {}, processMembers),
  answer('EndpointState', 'ENDPOINT_STATE', {}, { woken: flag, unlocked: flag }),
])

const one: BodySpec<readonly object[]> = {
  ...json('postureResponse', response),
  read: (checked) => [checked as object],
}
/** SDKs send one report for each check, or for each process of a check. */
const many = json<readonly object[]>('postureResponse', {
  type: 'array',
  maxItems: 500,
  items: response,
})

/** Reports of endpoints on themselves, and the state that follows from them. */
export function posture({ policy }: Services): Handlers {
  // wire: 201 for several reports too
  const submit = async (c: RequestContext, _: unknown, reports: readonly object[]) => {
    const { services } = await policy.submitPosture({ responses: reports.map(jsonBytes) }, callContext(c))
    return send(c, 201, `{"data":{"services":${Buffer.from(services).toString()}},"meta":{}}`)
  }
  const about = { status: 201, data: postureResponseSchema, envelope: 'postureResponseEnvelope' } as const
  return {
    'POST /posture-response': takes(one, submit, { about }),
    'POST /posture-response-bulk': takes(many, submit, { about }),

    // wire: empty for an unknown identity
    'GET /identities/{id}/posture-data': {
      about: { data: postureDataSchema, envelope: 'postureDataEnvelope' },
      handle: async (c, { id }) =>
        detail(c, (await policy.getPostureData({ identityId: id }, callContext(c))).json),
    },
    'GET /identities/{id}/failed-service-requests': {
      about: {
        data: { type: 'array', items: failedRequestSchema },
        envelope: 'failedServiceRequestEnvelope',
      },
      handle: async (c, { id }) =>
        detail(c, (await policy.listFailedRequests({ identityId: id }, callContext(c))).json),
    },
  }
}
