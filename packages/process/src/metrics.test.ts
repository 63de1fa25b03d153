import { readFile } from 'node:fs/promises'
import { Registry } from 'prom-client'
import { expect, test, vi } from 'vitest'
import { metrics, pools, processMetrics, registry } from './metrics.js'
import { collectNodeMetrics } from './node-metrics.js'

interface Described {
  readonly name: string
  readonly help: string
  readonly type: string
  readonly labelNames?: readonly string[]
}

test('docs/telemetry.md has every metric with its type, labels and meaning, and no other', async () => {
  const text = await readFile(`${import.meta.dirname}/../../../docs/telemetry.md`, 'utf8')
  const documented = text.match(/^\| `overlay_\w+` \|(?: \w+ \|).*$/gm)
  const { registry: own, ...ofLauncher } = processMetrics()
  const described = [...(await registry.getMetricsAsJSON()), ...(await own.getMetricsAsJSON())]
  const types = new Map(described.map(({ name, type }) => [name, type]))
  const declared = [...Object.values<unknown>(metrics), ...Object.values<unknown>(ofLauncher)].map(
    (metric) => {
      const { name, help, labelNames = [] } = metric as Described
      return `| \`${name}\` | ${types.get(name)} | ${labelNames.join(', ')} | ${help} |`
    },
  )
  expect(documented?.map((line) => line.replace('| |', '|  |')).sort()).toEqual(declared.sort())
})

test('connections of all pools are counted when metrics are asked for', async () => {
  const pool = { totalCount: 5, idleCount: 2, waitingCount: 7 }
  pools.add(pool)
  const text = await registry.getSingleMetricAsString('overlay_pool_connections')
  pools.delete(pool)
  expect(text).toContain('{state="busy"} 3')
  expect(text).toContain('{state="idle"} 2')
  expect(text).toContain('{state="waiting"} 7')
})

test('a process that does not set a time or the state of the bus has none, so that no alert takes it for 0', async () => {
  vi.resetModules() // other tests set some
  const { registry: fresh } = await import('./metrics.js')
  const all = await fresh.getMetricsAsJSON()
  const unset = all.filter(({ name }) => /^overlay_.*_timestamp_seconds$|^overlay_bus_connected$/.test(name))
  expect(unset.length).toBeGreaterThan(5)
  for (const { name, values } of unset) expect([name, values]).toEqual([name, []])
})

const monitoring = `${import.meta.dirname}/../../../deploy/kustomize/components/monitoring`
const read = (name: string) => readFile(`${monitoring}/${name}`, 'utf8')

interface Panel {
  readonly targets?: readonly { readonly expr: string }[]
}

const queries = {
  alerts: () => read('alerts.yaml'),
  async dashboard() {
    const { panels } = JSON.parse(await read('dashboard.json')) as { panels: readonly Panel[] }
    return panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)).join('\n')
  },
  async 'adapter of autoscalers'() {
    return [...(await read('adapter.yaml')).matchAll(/seriesQuery: '(.*)'/g)]
      .map(([, query]) => query)
      .join('\n')
  },
}

test.each(Object.entries(queries))(
  'the %s names metrics that exist, with labels that they have',
  async (_what, query) => {
    const text = await query()
    const declared = [
      ...Object.values<unknown>(metrics),
      ...Object.values<unknown>(processMetrics()),
    ].flatMap((metric) => {
      const { name, labelNames = [] } = metric as Partial<Described>
      return name === undefined ? [] : [[name, [...labelNames, ...ofScrape]] as const]
    })
    const node = new Registry()
    collectNodeMetrics(node)
    const ofNode = node.getMetricsAsArray().map(({ name }) => [name, ofScrape] as const)
    const labelsOf = new Map<string, readonly string[]>([...declared, ...ofNode])
    const used = [
      ...text.matchAll(/\b((?:overlay|process|nodejs)_\w+?)(?:_count|_bucket)?\b(?:\{([^}]*)\})?/g),
    ]
    expect(used.length).toBeGreaterThan(2)
    for (const [, name = '', selector = ''] of used) {
      const labels = [...selector.matchAll(/(\w+)!?=/g)].map(([, label]) => label)
      expect([name, labels.filter((label) => !labelsOf.get(name)?.includes(String(label)))]).toEqual([
        name,
        [],
      ])
      expect(labelsOf.has(name), name).toBe(true)
    }
  },
)

/** Labels that Prometheus adds. */
const ofScrape = ['job', 'process', 'component', 'namespace', 'pod']
