import {
  anyObject,
  flag,
  integer,
  listOf,
  mapOf,
  named,
  object,
  oneOf,
  orNull,
  text,
  time,
} from '@overlay/model/schema'

const texts = listOf(text)

const service = object({
  id: text,
  name: text,
  postureQueryType: text,
  timeout: integer,
  timeoutRemaining: integer,
})

export const postureResponseSchema = named(
  'postureResponse',
  object({ services: listOf(named('postureResponseService', service)) }),
)

const report = { lastUpdatedAt: orNull(time), postureCheckId: text, timedOut: flag }
const process = { ...report, binaryHash: text, isRunning: flag, signerFingerprints: texts }

export const postureDataSchema = named(
  'postureData',
  object({
    apiSessionPostureData: mapOf(anyObject),
    domain: named('postureDataDomain', object({ ...report, domain: orNull(text) })),
    mac: named('postureDataMac', object({ ...report, addresses: orNull(texts) })),
    os: named(
      'postureDataOs',
      object({ ...report, build: orNull(text), type: orNull(text), version: orNull(text) }),
    ),
    processes: listOf(named('postureDataProcess', object(process))),
  }),
)

/** Further members, which depend on the type of the check, show the condition and the state of the endpoint. */
const checkFailure = named('postureCheckFailure', {
  ...object({ postureCheckId: text, postureCheckName: text, postureCheckType: text }),
  additionalProperties: true,
})

const policyFailure = named(
  'policyFailure',
  object({ checks: listOf(checkFailure), policyId: text, policyName: text }),
)

export const failedRequestSchema = named(
  'failedServiceRequest',
  object({
    apiSessionId: text,
    policyFailures: listOf(policyFailure),
    serviceId: text,
    serviceName: text,
    sessionType: oneOf('Dial', 'Bind'),
    when: time,
  }),
)
