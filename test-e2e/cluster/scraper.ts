import { samplesOf } from '@overlay/launcher/testing'
import type { KubernetesObject } from '../kubernetes/kustomize.js'
import { selects } from '../kubernetes/network-policy.js'
import type { Pod } from './pod.js'

/** Reads the metrics of a pod as Prometheus does. */
export type Scraper = (pod: Pod) => Promise<Series>

/** The sum of the series with a name. Undefined: there is none. */
export type Series = (name: string) => number | undefined

/** As the PodMonitor among the objects says. */
export function openScraper(objects: readonly KubernetesObject[]): Scraper {
  const monitors = objects.filter(({ kind }) => kind === 'PodMonitor')
  return async (pod) => {
    const monitor = monitors.find(({ spec }) => selects(spec.selector, pod.labels))
    if (!monitor) throw new Error(`no PodMonitor selects ${pod.name}`)
    const [{ port, path }] = monitor.spec.podMetricsEndpoints
    const response = await fetch(`http://${pod.address}:${pod.port(port)}${path}`)
    if (!response.ok) throw new Error(`${pod.name} answers ${path} with ${response.status}`)
    const text = await response.text()
    return (name) => {
      const samples = samplesOf(text, name)
      return samples.length === 0 ? undefined : samples.reduce((sum, { value }) => sum + value, 0)
    }
  }
}
