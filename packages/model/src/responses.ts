import {
  anyObject,
  flag,
  integer,
  links,
  listOf,
  mapOf,
  named,
  object,
  oneOf,
  orNull,
  reference,
  text,
  time,
} from './kernel/schema.js'

// What special operations show. The owner renders values of these schemas, and the served documents describe them.

const routerOfAdvice = named(
  'routerEntityRef',
  object({ _links: links, entity: text, id: text, isOnline: flag }, { name: text }),
)

export const policyAdvice = named(
  'policyAdvice',
  object(
    {
      commonRouters: orNull(listOf(routerOfAdvice)),
      identity: reference,
      identityId: text,
      service: reference,
      serviceId: text,
    },
    { identityRouterCount: integer, isBindAllowed: flag, isDialAllowed: flag, serviceRouterCount: integer },
  ),
)

export const assignedConfig = named(
  'serviceConfigDetail',
  object({ config: reference, configId: text, service: reference, serviceId: text }),
)

const endingService = object({
  id: text,
  name: text,
  postureQueryType: text,
  timeout: integer,
  timeoutRemaining: integer,
})

/** The services that an endpoint is about to lose. */
export const endingServices = listOf(named('postureResponseService', endingService))

const report = { lastUpdatedAt: orNull(time), postureCheckId: text, timedOut: flag }
const process = { ...report, binaryHash: text, isRunning: flag, signerFingerprints: listOf(text) }

export const reportedPosture = named(
  'postureData',
  object({
    apiSessionPostureData: mapOf(anyObject),
    domain: named('postureDataDomain', object({ ...report, domain: orNull(text) })),
    mac: named('postureDataMac', object({ ...report, addresses: orNull(listOf(text)) })),
    os: named(
      'postureDataOs',
      object({ ...report, build: orNull(text), type: orNull(text), version: orNull(text) }),
    ),
    processes: listOf(named('postureDataProcess', object(process))),
  }),
)

const checkMembers = object({ postureCheckId: text, postureCheckName: text, postureCheckType: text })

/** Further members, which depend on the type of the check, show the condition and the state of the endpoint. */
const failedCheck: typeof checkMembers = named('postureCheckFailure', {
  ...checkMembers,
  additionalProperties: true,
})

const failedPolicy = named(
  'policyFailure',
  object({ checks: listOf(failedCheck), policyId: text, policyName: text }),
)

export const failedRequest = named(
  'failedServiceRequest',
  object({
    apiSessionId: text,
    policyFailures: listOf(failedPolicy),
    serviceId: text,
    serviceName: text,
    sessionType: oneOf('Dial', 'Bind'),
    when: time,
  }),
)
