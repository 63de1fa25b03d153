import { beforeAll, expect, test } from 'vitest'
import { methodTable } from '../../packages/rpc/src/method-table.js'
import { peerNames } from '../../packages/rpc/src/peer-name.js'
import { type KubernetesObject, render, unavailableAfter } from './kustomize.js'
import { type NetworkPolicy, type Place, type Selector, selects } from './network-policy.js'
import { components, environmentOf, ownWorkloadsIn, settingsOf, workloadsIn } from './workloads.js'

const folders = { development: 'overlays/development', production: 'overlays/production' }
const rendered: Record<string, readonly KubernetesObject[]> = {}
let unavailable: unknown
beforeAll(async () => {
  unavailable = await unavailableAfter(async () => {
    for (const [overlay, folder] of Object.entries(folders))
      rendered[overlay] = (await render(folder)).objects
  })
}, 600_000)

const objectsOf = (overlay: string): readonly KubernetesObject[] => rendered[overlay] ?? []

/** What the policies allow: `identity > pki:7000` between pods, otherwise the place as it is written. */
function allowedIn(objects: readonly KubernetesObject[], direction: 'ingress' | 'egress'): readonly string[] {
  const pods = new Map(workloadsIn(objects).map(({ name, labels }) => [name.replace(/-\d.*$/, ''), labels]))
  const selected = (selector: Selector) =>
    [...pods].filter(([, labels]) => selects(selector, labels)).map(([name]) => name)
  const textOf = ({ podSelector, namespaceSelector, ipBlock }: Place): readonly string[] => {
    if (ipBlock) return [`${ipBlock.cidr}${ipBlock.except ? ' except private' : ''}`]
    if (!namespaceSelector) return selected(podSelector ?? {})
    expect(podSelector).toBeUndefined()
    return [`namespace ${namespaceSelector.matchLabels?.['kubernetes.io/metadata.name']}`]
  }
  const policies = objects
    .filter(({ kind }) => kind === 'NetworkPolicy')
    .map(({ spec }) => spec as NetworkPolicy)
  return policies.flatMap((policy) =>
    (policy[direction] ?? []).flatMap(({ from, to, ports }) => {
      const places = (direction === 'ingress' ? from : to)?.flatMap(textOf) ?? ['all']
      return selected(policy.podSelector).flatMap((pod) =>
        places.flatMap((place) =>
          (ports ?? [{ port: 0 }]).map(({ port, protocol = 'TCP' }) => {
            const [source, target] = direction === 'ingress' ? [place, pod] : [pod, place]
            return `${source} > ${target}:${port}${protocol === 'TCP' ? '' : ` ${protocol}`}`
          }),
        ),
      )
    }),
  )
}

/** By the table of callers. What all peers may call is of tools: health and reflection. */
const calls = [...methodTable].flatMap(([host, methods]) => {
  const lists = [...methods.values()]
    .map(({ callers }) => callers)
    .filter((names) => names.length < peerNames.length && !names.includes('operator'))
  return [...new Set(lists.flat())].map((caller) => `${caller} > ${host}:7000`)
})

const services = components.slice(1)
const databases = [...services, 'migrate'].map((pod) => `${pod} > postgres:5432`)
const buses = services.map((pod) => `${pod} > nats:4222`)
const entrances = ['all > gateway:1280', 'all > sessions:6262']
const metrics = components.map((component) => `namespace monitoring > ${component}:9000`)
const nameServers = (pods: readonly string[]) =>
  pods.flatMap((pod) => [`${pod} > namespace kube-system:53`, `${pod} > namespace kube-system:53 UDP`])
const published = ['identity > 0.0.0.0/0 except private:443', 'identity > ::/0 except private:443']
/** The job has no metrics; its label is that of all pods of the product. */
const ofJob = ['namespace monitoring > migrate:9000']

test('every pod is cut off in both directions, but for what other policies allow', ({ skip }) => {
  if (unavailable) skip()
  for (const overlay of Object.keys(folders)) {
    const all = objectsOf(overlay).find(({ metadata }) => metadata.name === 'deny-by-default')
    expect(all?.spec).toEqual({ podSelector: {}, policyTypes: ['Ingress', 'Egress'] })
    for (const { kind, spec } of objectsOf(overlay)) {
      if (kind !== 'NetworkPolicy') continue
      const { policyTypes, ingress, egress } = spec as NetworkPolicy
      if (ingress) expect(policyTypes).toContain('Ingress')
      if (egress) expect(policyTypes).toContain('Egress')
    }
  }
})

test('processes may connect to those whose methods they call, to servers, and nothing else', ({ skip }) => {
  if (unavailable) skip()
  const pods = [...components, 'migrate', 'postgres', 'nats']
  expect([...allowedIn(objectsOf('development'), 'egress')].sort()).toEqual(
    [...calls, ...databases, ...buses, ...nameServers(pods), ...published].sort(),
  )
  const outside = [...databases, ...buses].map((text) =>
    text.replace('postgres', '192.0.2.0/28').replace('nats', '192.0.2.16/28'),
  )
  expect([...allowedIn(objectsOf('production'), 'egress')].sort()).toEqual(
    [...calls, ...outside, ...nameServers([...components, 'migrate']), ...published].sort(),
  )
})

test('processes accept calls, clients, routers and the monitoring, and nothing else', ({ skip }) => {
  if (unavailable) skip()
  const own = [...calls, ...entrances, ...metrics, ...ofJob]
  expect([...allowedIn(objectsOf('production'), 'ingress')].sort()).toEqual([...own].sort())
  expect([...allowedIn(objectsOf('development'), 'ingress')].sort()).toEqual(
    [...own, ...databases, ...buses].sort(),
  )
})

test('each process knows the peers that it may call', ({ skip }) => {
  if (unavailable) skip()
  const objects = objectsOf('production')
  const known = ownWorkloadsIn(objects)
    .filter(({ kind }) => kind !== 'Job')
    .flatMap(({ name, containers }) =>
      containers.flatMap((container) => {
        const variables = environmentOf(container, objects)
        return Object.values(settingsOf(container)).flatMap(({ env }) => {
          const [, host, port] =
            /^dns:(\w+):(\d+)$/.exec((env.endsWith('_PEERS') && variables.get(env)) || '') ?? []
          return host === undefined ? [] : [`${name} > ${host}:${port}`]
        })
      }),
    )
  expect(known.sort()).toEqual([...calls].sort())
})
