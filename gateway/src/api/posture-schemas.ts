import type { JsonSchema } from '../http/body.js'

const text = { type: 'string' }
const texts = { type: 'array', items: text }
const time = { type: 'string', format: 'date-time' }
const flag = { type: 'boolean' }
const anything = { type: 'object', additionalProperties: true }
const orNull = <S extends JsonSchema>(schema: S) => ({ ...schema, type: [schema.type, 'null'] })

const object = (title: string, properties: Readonly<Record<string, JsonSchema>>): JsonSchema => ({
  title,
  type: 'object',
  properties,
  required: Object.keys(properties),
})

export const postureResponseSchema = object('postureResponse', {
  services: { type: 'array', items: object('postureResponseService', { id: text, name: text }) },
})

const said = { lastUpdatedAt: orNull(time), postureCheckId: text, timedOut: flag }

export const postureDataSchema = object('postureData', {
  apiSessionPostureData: { type: 'object', additionalProperties: anything },
  domain: object('postureDataDomain', { ...said, domain: orNull(text) }),
  mac: object('postureDataMac', { ...said, addresses: orNull(texts) }),
  os: object('postureDataOs', { ...said, build: orNull(text), type: orNull(text), version: orNull(text) }),
  processes: {
    type: 'array',
    items: object('postureDataProcess', {
      ...said,
      binaryHash: text,
      isRunning: flag,
      signerFingerprints: texts,
    }),
  },
})

/** Beside these it says what was asked and what was said, which depends on the type of the check. */
const checkFailure: JsonSchema = {
  ...object('postureCheckFailure', { postureCheckId: text, postureCheckName: text, postureCheckType: text }),
  additionalProperties: true,
}

export const failedRequestSchema = object('failedServiceRequest', {
  apiSessionId: text,
  policyFailures: {
    type: 'array',
    items: object('policyFailure', {
      checks: { type: 'array', items: checkFailure },
      policyId: text,
      policyName: text,
    }),
  },
  serviceId: text,
  serviceName: text,
  sessionType: { type: 'string', enum: ['Dial', 'Bind'] },
  when: time,
})
