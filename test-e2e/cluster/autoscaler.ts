import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parse } from 'yaml'
import type { KubernetesObject } from '../kubernetes/kustomize.js'
import { type AutoscalerSpec, nameOf, openScaling } from './autoscaling.js'
import type { Cluster } from './cluster.js'
import type { Pod } from './pod.js'
import { openScraper, type Scraper } from './scraper.js'

/** A HorizontalPodAutoscaler, which works only when a test says so. */
export interface Autoscaler {
  /**
   * One evaluation, at a time by the clock of the test. Processor time and rates are those since the evaluation before. Scales
   * the workload, and returns the average of each metric.
   */
  evaluate(atSeconds: number): Promise<Readonly<Record<string, number | undefined>>>
}

interface Sample {
  readonly atMs: number
  readonly cpuSeconds: number
  readonly series: Awaited<ReturnType<Scraper>>
}

export async function openAutoscaler(
  cluster: Cluster,
  objects: readonly KubernetesObject[],
  name: string,
): Promise<Autoscaler> {
  const found = objects.find((one) => one.kind === 'HorizontalPodAutoscaler' && one.metadata.name === name)
  if (!found) throw new Error(`there is no autoscaler ${name}`)
  const spec = found.spec as AutoscalerSpec
  const workload = cluster.workload(spec.scaleTargetRef.name)
  const scrape = openScraper(objects)
  const scaling = openScaling(spec)
  const readers = new Map<string, Reader>()
  for (const metric of spec.metrics)
    readers.set(nameOf(metric), metric.pods ? await adapted(nameOf(metric)) : ofResource(nameOf(metric)))
  const samples = new Map<Pod, Sample>()

  return {
    async evaluate(atSeconds) {
      if (!workload.isSettled()) throw new Error('not evaluated here: pods that start or stop')
      const pairs = await Promise.all(
        workload.pods().map(async (pod) => {
          const now = { atMs: performance.now(), cpuSeconds: pod.cpuSeconds(), series: await scrape(pod) }
          const before = samples.get(pod)
          samples.set(pod, now)
          return { now, before }
        }),
      )
      const values = [...readers.values()].map((read) => pairs.map(({ now, before }) => read(now, before)))
      workload.scale(scaling.next(workload.replicas(), values, atSeconds))
      return Object.fromEntries([...readers.keys()].map((metric, at) => [metric, meanOf(values[at] ?? [])]))
    },
  }
}

/** What a metric is at a pod. */
type Reader = (now: Sample, before: Sample | undefined) => number | undefined

const rateOf =
  (read: (sample: Sample) => number | undefined): Reader =>
  (now, before) => {
    const [value, former] = [read(now), before && read(before)]
    if (!before || value === undefined || former === undefined) return undefined
    return ((value - former) * 1000) / (now.atMs - before.atMs)
  }

function ofResource(name: string): Reader {
  if (name !== 'cpu') throw new Error(`not evaluated here: the resource ${name}`)
  return rateOf(({ cpuSeconds }) => cpuSeconds)
}

const rulesFile = join(import.meta.dirname, '../../deploy/kustomize/components/monitoring/adapter.yaml')

/** A metric as a rule of the Prometheus adapter makes it of the series of a pod. */
async function adapted(metric: string): Promise<Reader> {
  const { rules } = parse(await readFile(rulesFile, 'utf8'))
  const rule = rules.custom.find(({ name }: { name: { as: string } }) => name.as === metric)
  if (!rule) throw new Error(`the adapter has no rule for ${metric}`)
  const [, name = ''] = /^(\w+)\{namespace!="",pod!=""\}$/.exec(rule.seriesQuery) ?? []
  const sum = ({ series }: Sample): number | undefined => series(name)
  const [, kind] = /^sum by \(<<\.GroupBy>>\) \((.*)\)$/.exec(rule.metricsQuery) ?? []
  if (name && kind === '<<.Series>>{<<.LabelMatchers>>}') return sum
  if (name && kind === 'rate(<<.Series>>{<<.LabelMatchers>>}[2m])') return rateOf(sum)
  throw new Error(`not evaluated here: ${rule.metricsQuery} of ${rule.seriesQuery}`)
}

function meanOf(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined)
  return known.length === 0 ? undefined : known.reduce((sum, value) => sum + value, 0) / known.length
}
