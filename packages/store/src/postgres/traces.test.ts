import { metrics, openLog, readSettings, tracingSettings } from '@overlay/process'
import { openTracing } from '@overlay/process/tracing'
import { startCollector } from '@overlay/process/tracing/testing'
import { Fault, type RequestSpan, tracing, useTracing } from '@overlay/rpc'
import { afterEach, expect, test } from 'vitest'
import { batch } from './batch.js'

afterEach(() => useTracing(undefined))

const lines: string[] = []
const log = openLog('test', {
  level: 'info',
  format: 'json',
  destination: { write: (line: string) => void lines.push(line) },
})

const open = (env: NodeJS.ProcessEnv) =>
  openTracing({ name: 'overlay-test', settings: readSettings(tracingSettings, env), log })

/** Runs work as the span of a request from outside. */
async function request<T>(name: string, work: () => Promise<T>, traceparent?: string): Promise<T> {
  const span = tracing?.request(name, traceparent) as RequestSpan
  try {
    return await span.run(work)
  } finally {
    span.end({ name, attributes: {} })
  }
}

const step = <T>(name: string, work: () => Promise<T>): Promise<T> =>
  tracing?.within({ name, kind: 'internal', attributes: {} }, () => work()) as Promise<T>

function requests(count: number): void {
  for (let n = 0; n < count; n++) tracing?.request('many').end({ name: 'many', attributes: {} })
}

const spansResult = async (result: string): Promise<number> =>
  (await metrics.traceSpans.get()).values.find(({ labels }) => labels.result === result)?.value ?? 0

test.each([
  ['there is no collector', {}],
  ['it is disabled', { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1', OTEL_SDK_DISABLED: 'true' }],
])('nothing is traced where %s', async (_case, env) => {
  await using _tracing = await open(env)
  expect(tracing).toBeUndefined()
})

test.each([
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318'],
  ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'secret'],
  ['OTEL_TRACES_SAMPLER', 'sometimes'],
  ['OTEL_TRACES_SAMPLER_ARG', '2'],
  ['OTEL_RESOURCE_ATTRIBUTES', 'a=%'],
])('%s=%s is refused', (name, value) => {
  const read = () => readSettings(tracingSettings, { [name]: value })
  expect(read).toThrow(name)
  if (name.endsWith('HEADERS')) expect(read).not.toThrow(value)
})

test('a shared call is a span of the first trace that is linked with the others', async () => {
  await using collector = await startCollector()
  {
    await using _tracing = await open({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url })
    const double = batch((list: readonly number[]) =>
      step('statement', async () => list.map((entry) => entry * 2)),
    )
    const results = ['first', 'second'].map((name, entry) => request(name, () => double(entry)))
    expect(await Promise.all(results)).toEqual([0, 2])
    await request('alone', () => double(1))
  }
  const named = (name: string) => collector.spans.find((span) => span.name === name)
  const [first, second, alone, shared] = ['first', 'second', 'alone', 'batch'].map(named)
  expect(shared).toMatchObject({
    traceId: first?.traceId,
    parentId: first?.id,
    links: [second?.id],
    attributes: { 'overlay.batch.size': 2 },
  })
  expect(second).toMatchObject({ parentId: '', links: [shared?.id] })
  const statements = collector.spans.filter(({ name }) => name === 'statement')
  expect(statements.map(({ parentId }) => parentId)).toEqual([shared?.id, alone?.id])
})

test('a failure has its code, and is an error if the product is to blame', async () => {
  await using collector = await startCollector()
  {
    await using _tracing = await open({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url })
    const failing = (err: Error) => step(err.message, async () => Promise.reject(err)).catch(() => undefined)
    await request('failures', async () => {
      await failing(new Fault('NOT_FOUND'))
      await failing(new Fault('TIMEOUT'))
      await failing(new TypeError('secret'))
    })
  }
  expect(collector.spans.map(({ attributes, isError }) => [attributes['overlay.code'], isError])).toEqual([
    ['NOT_FOUND', false],
    ['TIMEOUT', true],
    ['TypeError', true],
    [undefined, false],
  ])
})

const traceId = '0af7651916cd43dd8448eb211c80319c'
const sampled = `00-${traceId}-b7ad6b7169203331-01`
const unsampled = sampled.replace(/01$/, '00')

test.each([
  ['parentbased_always_on', { none: true, sampled: true, unsampled: false }],
  ['parentbased_always_off', { none: false, sampled: true, unsampled: false }],
  ['always_on', { none: true, sampled: true, unsampled: true }],
  ['always_off', { none: false, sampled: false, unsampled: false }],
])('the sampler %s decides where a trace enters the product', async (sampler, expected) => {
  await using collector = await startCollector()
  {
    await using _tracing = await open({
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_TRACES_SAMPLER: sampler,
    })
    for (const [name, header] of Object.entries({ none: undefined, sampled, unsampled }))
      await request(name, () => step(`below ${name}`, async () => undefined), header)
  }
  const names = new Set(collector.spans.map(({ name }) => name))
  for (const [name, isTraced] of Object.entries(expected)) {
    expect(names.has(name), name).toBe(isTraced)
    expect(names.has(`below ${name}`), name).toBe(isTraced)
  }
})

test('work behind the end of a request is not traced', async () => {
  await using collector = await startCollector()
  {
    await using _tracing = await open({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url })
    let later: Promise<void> | undefined
    let ended: () => void = () => undefined
    const end = new Promise<void>((resolve) => {
      ended = resolve
    })
    await request('request', async () => {
      later = end.then(() => step('later', async () => undefined))
    })
    ended()
    await later
  }
  expect(collector.spans.map(({ name }) => name)).toEqual(['request'])
})

/** As many as are sent at once. */
const BATCH = 512

test('a collector that is away costs its spans and one warning, and gets later ones', async () => {
  const gone = await startCollector()
  await gone[Symbol.asyncDispose]()
  lines.length = 0
  await using tracing = await open({
    OTEL_EXPORTER_OTLP_ENDPOINT: gone.url,
    OTEL_EXPORTER_OTLP_TIMEOUT: '100',
  })
  for (let round = 0; round < 2; round++) {
    const failed = await spansResult('failed')
    requests(BATCH)
    await expect.poll(() => spansResult('failed')).toBe(failed + BATCH)
  }
  expect(lines.filter((line) => line.includes('traces not sent'))).toHaveLength(1)

  await using back = await startCollector(Number(new URL(gone.url).port))
  await request('sent', async () => undefined)
  await tracing[Symbol.asyncDispose]()
  expect(back.spans).toMatchObject([{ name: 'sent', service: 'overlay-test', kind: 'server' }])
})

test('beyond the queue, spans are dropped', async () => {
  const gone = await startCollector()
  await gone[Symbol.asyncDispose]()
  const before = await spansResult('dropped')
  await using _tracing = await open({
    OTEL_EXPORTER_OTLP_ENDPOINT: gone.url,
    OTEL_EXPORTER_OTLP_TIMEOUT: '100',
  })
  requests(4100)
  expect(await spansResult('dropped')).toBe(before + 4)
})
