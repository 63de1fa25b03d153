import { execFile } from 'node:child_process'
import { EventEmitter } from 'node:events'
import { appendFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { parseAllDocuments } from 'yaml'
import type { KubernetesObject } from '../kubernetes/kustomize.js'
import type { NetworkPolicy } from '../kubernetes/network-policy.js'
import { type Balancer, startBalancer } from './balancer.js'
import { type ContainerSpec, portOf, type ServiceSpec, type WorkloadSpec } from './manifests.js'
import { canFilter, type Endpoint, enforce } from './network-policies.js'
import { type Pod, type PodDeps, startPod } from './pod.js'
import { openPodNetwork } from './pod-network.js'
import { isStandIn, type StandIn, startStandIn } from './stand-ins.js'
import { openWorkload, type Workload } from './workloads.js'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')

export interface ClusterOptions {
  readonly objects: readonly KubernetesObject[]
  /** The directory of the files of each image, by its name without tag; of another build, by a name that a test chooses. */
  readonly images: Readonly<Record<string, string>>
  /** Data of config maps that an operator sets. */
  settings?(
    addressOf: (service: string) => string,
  ): Readonly<Record<string, Readonly<Record<string, string>>>>
  /** Servers on this machine that pods find outside the cluster. */
  readonly outside?: readonly OutsideServer[]
  /** Divides waits that are longer than one machine needs: hooks, minReadySeconds, periods of probes before a pod is ready. */
  readonly hurry?: number
}

export interface OutsideServer {
  readonly name: string
  readonly address: string
  readonly port: number
  /** At which it listens on this machine. */
  readonly localPort: number
}

/**
 * Runs rendered manifests without Kubernetes. Each pod has a network namespace with an address of its own, and each
 * container is a process with its user, its root, its mounts and exactly its environment; containers listen at
 * 0.0.0.0 as in a cluster. Names of services resolve to the addresses of ready pods, or to an address at which a
 * balancer passes connections through to them. Containers of Postgres and NATS are replaced by the servers of the other
 * tests. Network policies are enforced where nftables is installed. Resources and disruption budgets are not executed. Requires
 * root.
 */
export interface Cluster extends AsyncDisposable {
  /** `localhost:port` of a service for clients outside. */
  addressOf(service: string): string
  workload(name: string): Workload
  /** The ready pods of a service. */
  endpoints(service: string): readonly Pod[]
  /** Resolves when the check holds. Checked after each change. */
  until(check: () => boolean): Promise<void>
  /** Resolves when all workloads are as their manifests want them, and all jobs are complete. */
  settled(): Promise<void>
  /** Replaces config maps, network policies and the templates of workloads by those of these objects, and runs their jobs. */
  apply(objects: readonly KubernetesObject[]): Promise<void>
  /** What pods did that healthy ones do not: restarts, failed probes, stops that took too long. */
  readonly problems: string[]
  /** The directory of logs. */
  readonly directory: string
}

interface NamedService {
  readonly name: string
  readonly spec: ServiceSpec
  /** Undefined: headless. */
  readonly address: string | undefined
}

export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  const { images, outside: servers = [], hurry = 1 } = options
  const directory = await mkdtemp(join(tmpdir(), 'overlay-cluster-'))
  const objects = [...options.objects, ...(await certificates())]
  const of = (kind: string, among: readonly KubernetesObject[] = objects): readonly KubernetesObject[] =>
    among.filter((object) => object.kind === kind)
  const problems: string[] = []
  const changes = new EventEmitter().setMaxListeners(0)
  const workloads = new Map<string, Workload>()
  const standIns: StandIn[] = []
  const balancers: Balancer[] = []
  const outside = new Map<string, string>()
  let jobs: readonly Pod[] = []
  let completeJobs = 0
  let isQueued = false
  const changed = (): void => {
    if (isQueued) return
    isQueued = true
    setImmediate(() => {
      isQueued = false
      for (const workload of workloads.values()) workload.reconcile()
      changes.emit('change')
    })
  }

  const note = (text: string): void =>
    appendFileSync(join(directory, 'cluster.log'), `${new Date().toISOString()} ${text}\n`)
  const services = new Map<string, NamedService>()
  const podsOf = ({ spec }: NamedService): readonly Pod[] =>
    [...workloads.values()]
      .flatMap((workload) => workload.pods())
      .filter((pod) => matches(spec.selector, pod.labels) && (pod.isReady() || spec.publishNotReadyAddresses))
  const network = await openPodNetwork((name) => {
    const service = services.get(name)
    const address = service?.address ?? servers.find((server) => server.name === name)?.address
    if (address !== undefined) return [address]
    return service && podsOf(service).map(({ address }) => address)
  })
  for (const { metadata, spec } of of('Service')) {
    const address = spec.clusterIP === 'None' ? undefined : network.allocate()
    if (address) await network.own(address)
    services.set(metadata.name, { name: metadata.name, spec, address })
  }
  for (const service of services.values()) await listen(service)

  const endpoints = new Set<Endpoint>()
  for (const { address, port, localPort } of servers) {
    await network.own(address)
    balancers.push(await startBalancer(address, port, () => [{ host: '127.0.0.1', port: localPort }]))
    endpoints.add({ address, labels: {}, isOutside: true })
  }
  for (const { address, spec } of services.values())
    if (address) endpoints.add({ address, labels: spec.selector })
  const specsOfPolicies = (among: readonly KubernetesObject[]) =>
    of('NetworkPolicy', among).map(({ spec }) => spec as NetworkPolicy)
  const policies = canFilter() ? enforce(network, specsOfPolicies(objects)) : undefined
  if (!policies) {
    if (process.env.CI === 'true') throw new Error('nftables is missing: network policies cannot be enforced')
    console.warn('network policies are not enforced, because nftables is missing')
  }
  async function admit(endpoint: Endpoint): Promise<() => Promise<void>> {
    endpoints.add(endpoint)
    await policies?.update([...endpoints])
    return async () => {
      endpoints.delete(endpoint)
      await policies?.update([...endpoints])
    }
  }

  /** What connections to a port of a service go to. */
  function targetsOf(service: NamedService, at: number): { host: string; port: number }[] {
    const port = service.spec.ports[at]
    if (!port) return []
    const others = standIns.filter(({ labels }) => matches(service.spec.selector, labels))
    return [
      ...others.map(({ port }) => ({ host: '127.0.0.1', port })),
      ...podsOf(service).map((pod) => {
        const target = port.targetPort ?? port.port
        return {
          host: pod.address,
          port: typeof target === 'number' ? target : (namedPorts(service).get(target) ?? 0),
        }
      }),
    ]
  }
  function namedPorts({ spec }: NamedService): ReadonlyMap<string, number> {
    const containers = [...of('Deployment'), ...of('StatefulSet')]
      .filter((object) => matches(spec.selector, object.spec.template.metadata.labels))
      .flatMap((object) => object.spec.template.spec.containers as ContainerSpec[])
    return new Map(
      containers.flatMap((container) =>
        (container.ports ?? []).flatMap(({ name }) =>
          name ? [[name, portOf(name, container)] as const] : [],
        ),
      ),
    )
  }
  async function listen(service: NamedService): Promise<void> {
    if (!service.address) return
    for (const [at, { port }] of service.spec.ports.entries()) {
      const targets = () => targetsOf(service, at)
      balancers.push(await startBalancer(service.address, port, targets))
      if (service.spec.type === undefined || service.spec.type === 'ClusterIP') continue
      const balancer = await startBalancer('127.0.0.1', 0, targets)
      balancers.push(balancer)
      outside.set(service.name, `localhost:${balancer.port}`)
    }
  }

  const addressOf = (service: string): string => {
    const address = outside.get(service)
    if (address === undefined) throw new Error(`service ${service} has no address for clients outside`)
    return address
  }
  const settings = options.settings?.(addressOf) ?? {}
  const configMaps = new Map<string, Readonly<Record<string, string>>>()
  setConfigMaps(objects)
  function setConfigMaps(among: readonly KubernetesObject[]): void {
    for (const { metadata, data } of of('ConfigMap', among))
      configMaps.set(metadata.name, { ...data, ...settings[metadata.name] })
  }
  const secrets = new Map(of('Secret').map((secret) => [secret.metadata.name, contentsOf(secret)]))
  const deps: PodDeps = {
    network,
    directory,
    configMap: (name) => configMaps.get(name),
    secret: (name) => secrets.get(name),
    image(reference) {
      const name = reference.replace(/[:@].*$/, '')
      const found = images[name]
      if (found === undefined) throw new Error(`there is no image ${reference}`)
      return found
    },
    admit,
    changed,
    note,
    problem: (text) => {
      problems.push(text)
      note(text)
      changed()
    },
    hurry,
  }

  const until = async (check: () => boolean): Promise<void> => {
    while (!check()) await new Promise((resolve) => changes.once('change', resolve))
  }
  for (const kind of ['Deployment', 'StatefulSet'] as const)
    for (const { metadata, spec } of of(kind)) {
      const { name } = metadata
      if (isStandIn(spec))
        standIns.push(await startStandIn(spec, (ref) => `${secrets.get(ref.name)?.[ref.key]}`))
      else workloads.set(name, openWorkload(deps, { kind, name, spec: spec as WorkloadSpec }))
    }
  runJobs(objects)
  function runJobs(among: readonly KubernetesObject[]): void {
    completeJobs = 0
    jobs = of('Job', among).map(({ metadata, spec }) => {
      const { template } = spec as WorkloadSpec
      const pod = startPod(deps, { name: metadata.name, template, revision: 0, minReadySeconds: 0 })
      void pod.completed.then((isComplete) => {
        if (isComplete) completeJobs++
        changed()
      })
      return pod
    })
  }
  changed()

  const workloadOf = (name: string): Workload => {
    const workload = workloads.get(name)
    if (!workload) throw new Error(`there is no workload ${name}`)
    return workload
  }
  return {
    addressOf,
    workload: workloadOf,
    endpoints(name) {
      const service = services.get(name)
      return service ? podsOf(service) : []
    },
    until,
    async apply(changed) {
      setConfigMaps(changed)
      const changedPolicies = specsOfPolicies(changed)
      if (changedPolicies.length > 0) await policies?.replace(changedPolicies)
      for (const kind of ['Deployment', 'StatefulSet'])
        for (const { metadata, spec } of of(kind, changed)) workloadOf(metadata.name).roll(spec.template)
      if (of('Job', changed).length > 0) runJobs(changed)
    },
    settled: () =>
      until(
        () =>
          completeJobs === jobs.length && [...workloads.values()].every((workload) => workload.isSettled()),
      ),
    problems,
    directory,
    async [Symbol.asyncDispose]() {
      await Promise.all([...jobs, ...workloads.values()].map((one) => one.kill()))
      for (const one of [...balancers, ...standIns, policies, network]) await one?.[Symbol.asyncDispose]()
      await rm(directory, { recursive: true })
    },
  }
}

const matches = (
  selector: Readonly<Record<string, string>>,
  labels: Readonly<Record<string, string>> = {},
): boolean => Object.entries(selector).every(([name, value]) => labels[name] === value)

function contentsOf({ data = {}, stringData = {} }: KubernetesObject): Record<string, Buffer> {
  return {
    ...mapValues(data, (text) => Buffer.from(text, 'base64')),
    ...mapValues(stringData, (text) => Buffer.from(text)),
  }
}

const mapValues = (record: Record<string, string>, map: (text: string) => Buffer): Record<string, Buffer> =>
  Object.fromEntries(Object.entries(record).map(([key, text]) => [key, map(text)]))

/** The secrets that cert-manager would write. */
async function certificates(): Promise<readonly KubernetesObject[]> {
  const { stdout } = await run('sh', ['deploy/certificates.sh'], { cwd: root })
  return parseAllDocuments(stdout)
    .map((document) => document.toJS() as KubernetesObject | null)
    .filter((object) => object !== null)
}
