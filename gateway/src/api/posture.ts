import { endingServices, failedRequest, reportedPosture } from '@overlay/model'
import { flag, listOf, type Members, named, object, oneOf, variable } from '@overlay/model/schema'
import type { Services } from '../clients/services.js'
import { json, jsonBytes } from '../http/body.js'
import { callContext } from '../http/calls.js'
import { sendData } from '../http/envelope.js'
import { acceptBody, type BodySpec, type RequestContext } from '../http/exchange.js'
import type { Handlers } from './operations.js'

const boundedText = (max: number) => ({ type: 'string', maxLength: max })
const boundedTexts = (most: number, max: number) => ({
  type: 'array',
  maxItems: most,
  items: boundedText(max),
})
const processMembers = {
  path: boundedText(4096),
  isRunning: flag,
  hash: boundedText(255),
  signerFingerprints: boundedTexts(64, 255),
}

const answer = (title: string, typeId: string, always: Members, sometimes: Members = {}) =>
  named(
    `postureResponse${title}Create`,
    object({ id: boundedText(255), typeId: oneOf(typeId), ...always }, sometimes),
  )

/** One report of an endpoint on itself. A check of several processes has one report for each. */
const response = variable('postureResponseCreate', 'typeId', [
  answer(
    'OperatingSystem',
    'OS',
    { type: boundedText(255), version: boundedText(255) },
    { build: boundedText(255) },
  ),
  answer('Domain', 'DOMAIN', { domain: boundedText(255) }),
  answer('MacAddress', 'MAC', { macAddresses: boundedTexts(256, 64) }),
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
  // wire: 201 for one report and for several
  const submit = async (c: RequestContext, _: unknown, reports: readonly object[]) => {
    const { services } = await policy.submitPosture({ responses: reports.map(jsonBytes) }, callContext(c))
    return sendData(c, { services: JSON.parse(services.toString()) }, 201)
  }
  const response = {
    status: 201,
    data: named('postureResponse', object({ services: endingServices })),
    envelope: 'postureResponseEnvelope',
  } as const
  return {
    'POST /posture-response': acceptBody(one, submit, { response }),
    'POST /posture-response-bulk': acceptBody(many, submit, { response }),

    // wire: 200 and empty data for an unknown identity, not 404
    'GET /identities/{id}/posture-data': {
      response: { data: reportedPosture, envelope: 'postureDataEnvelope' },
      handle: async (c, { id }) =>
        sendData(c, (await policy.getPostureData({ identityId: id }, callContext(c))).json),
    },
    'GET /identities/{id}/failed-service-requests': {
      response: {
        data: listOf(failedRequest),
        envelope: 'failedServiceRequestEnvelope',
      },
      handle: async (c, { id }) =>
        sendData(c, (await policy.listFailedRequests({ identityId: id }, callContext(c))).json),
    },
  }
}
