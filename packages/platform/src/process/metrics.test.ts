import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { metrics, pools, processMetrics, registry } from './metrics.js'

interface Described {
  readonly name: string
  readonly help: string
  readonly type: string
  readonly labelNames?: readonly string[]
}

test('docs/telemetry.md has every metric with its type, labels and meaning, and no other', async () => {
  const text = await readFile(`${import.meta.dirname}/../../../../docs/telemetry.md`, 'utf8')
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

test('the alerts name metrics that exist, with labels that they have', async () => {
  const text = await readFile(`${import.meta.dirname}/../../../../deploy/prometheus/alerts.yaml`, 'utf8')
  const declared = [...Object.values<unknown>(metrics), ...Object.values<unknown>(processMetrics())].flatMap(
    (metric) => {
      const { name, labelNames = [] } = metric as Partial<Described>
      return name === undefined ? [] : [[name, [...labelNames, 'process']] as const]
    },
  )
  const labelsOf = new Map(declared)
  const used = [...text.matchAll(/(overlay_\w+?)(?:_count)?\b(?:\{([^}]*)\})?/g)]
  expect(used.length).toBeGreaterThan(15)
  for (const [, name = '', selector = ''] of used) {
    const labels = [...selector.matchAll(/(\w+)=/g)].map(([, label]) => label)
    expect([name, labels.filter((label) => !labelsOf.get(name)?.includes(String(label)))]).toEqual([name, []])
    expect(labelsOf.has(name), name).toBe(true)
  }
})
