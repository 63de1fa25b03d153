import { setting } from './settings.js'

const samplers = [
  ...(['always_on', 'always_off', 'traceidratio'] as const),
  ...(['parentbased_always_on', 'parentbased_always_off', 'parentbased_traceidratio'] as const),
] as const

export type SamplerName = (typeof samplers)[number]

const schemes = ['http', 'https']

/** By the names of OpenTelemetry. The library reads further ones by itself. */
export const tracingSettings = {
  otlpEndpoint: setting
    .url(
      'OTEL_EXPORTER_OTLP_ENDPOINT',
      'OpenTelemetry collector of [traces](telemetry.md#traces), such as `http://collector:4318`; if not set, none are recorded',
      schemes,
    )
    .optional(),
  otlpTracesEndpoint: setting
    .url('OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'The same as a complete URL; it takes precedence', schemes)
    .optional(),
  otlpProtocol: setting.oneOf(
    'OTEL_EXPORTER_OTLP_PROTOCOL',
    'Protocol of the collector; others are not supported',
    ['http/protobuf'],
    { default: 'http/protobuf' },
  ),
  otlpHeaders: setting
    .parsed(
      'OTEL_EXPORTER_OTLP_HEADERS',
      'Headers for the collector, such as credentials: `name=value`, percent-encoded, separated by commas',
      pairs,
      { isSecret: true },
    )
    .optional(),
  otlpTimeoutMs: setting.number(
    'OTEL_EXPORTER_OTLP_TIMEOUT',
    'Milliseconds for sending spans, with repetitions, also when a process stops',
    { min: 100, max: 10_000, default: 3000 },
  ),
  otelServiceName: setting
    .text(
      'OTEL_SERVICE_NAME',
      'Name of the process in traces; if not set, `overlay`, or `overlay-gateway` and so on. With the launcher, all processes have this name',
    )
    .optional(),
  otelResource: setting
    .parsed('OTEL_RESOURCE_ATTRIBUTES', 'Further attributes of the process, in the same form', pairs)
    .optional(),
  otelSampler: setting.oneOf(
    'OTEL_TRACES_SAMPLER',
    'Which requests are traced. The default follows the decision of clients that send `traceparent`',
    samplers,
    { default: 'parentbased_always_on' },
  ),
  otelSamplerRatio: setting.parsed(
    'OTEL_TRACES_SAMPLER_ARG',
    'Share of requests that the `…traceidratio` samplers trace, from 0 to 1',
    ratio,
    { default: 1 },
  ),
  otelDisabled: setting.flag('OTEL_SDK_DISABLED', 'Record no traces'),
}

function pairs(text: string): Readonly<Record<string, string>> {
  try {
    return Object.fromEntries(text.split(',').map(pair))
  } catch {
    throw new Error('must be name=value, percent-encoded, separated by commas')
  }
}

function pair(text: string): [string, string] {
  const [, name, value] = /^\s*([^\s=]+)\s*=\s*(.*?)\s*$/.exec(text) ?? []
  if (name === undefined || value === undefined) throw new Error('no pair')
  return [decodeURIComponent(name), decodeURIComponent(value)]
}

function ratio(text: string): number {
  const value = Number(text)
  if (!(value >= 0 && value <= 1)) throw new Error('must be a number from 0 to 1')
  return value
}
