import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { STOP_MS } from '../../packages/process/src/limits.js'
import { splitAddress } from '../../packages/process/src/settings.js'
import { type KubernetesObject, render, unavailableAfter } from './kustomize.js'
import { type Compare, readOperatorKinds } from './operator-kinds.js'
import { validate } from './validate.js'
import {
  type Component,
  components,
  environmentOf,
  ownWorkloadsIn,
  secretsOf,
  settingsOf,
  type Workload,
  workloadsIn,
} from './workloads.js'

const root = join(import.meta.dirname, '../..')
const folders = ['overlays/development', 'overlays/production'] as const
/** The lowest version that has `sleep` before a stop, and the newest one whose schemas are known. */
const versions = ['1.30', '1.37'] as const
const unknownKind = /^WARN Couldn't find schema for kind (?<kind>\w+) with api version (?<apiVersion>\S+) /

const rendered = new Map<string, Awaited<ReturnType<typeof render>>>()
let operatorKinds: ReadonlyMap<string, Compare> = new Map()
let unavailable: unknown
beforeAll(async () => {
  unavailable = await unavailableAfter(async () => {
    for (const folder of folders) rendered.set(folder, await render(folder))
    operatorKinds = await readOperatorKinds()
  })
}, 600_000)

const definitionOf = ({ apiVersion, kind }: { readonly apiVersion?: string; readonly kind?: string }) =>
  operatorKinds.get(`${apiVersion} ${kind}`)
const objectsOf = (folder: string): readonly KubernetesObject[] => {
  const { objects } = rendered.get(folder) ?? {}
  if (!objects) throw new Error(`not rendered: ${folder}`)
  return objects
}
const ofKind = (objects: readonly KubernetesObject[], kind: string) =>
  objects.filter((object) => object.kind === kind)
const named = (objects: readonly KubernetesObject[], kind: string, name: string): KubernetesObject => {
  const found = ofKind(objects, kind).find(({ metadata }) => metadata.name === name)
  if (!found) throw new Error(`there is no ${kind} ${name}`)
  return found
}
const processesIn = (objects: readonly KubernetesObject[]): readonly Workload[] =>
  ownWorkloadsIn(objects).filter(({ kind }) => kind !== 'Job')

test('the development overlay fits on a machine with two processors', ({ skip }) => {
  if (unavailable) skip()
  const requested = workloadsIn(objectsOf('overlays/development')).flatMap(({ containers }) =>
    containers.map(({ resources }) => /^(\d+)m$/.exec(resources?.requests.cpu ?? '')?.[1]),
  )
  expect(requested).not.toContain(undefined)
  // the pods of the cluster itself request about 950m
  expect(requested.reduce((sum, millicores) => sum + Number(millicores), 0)).toBeLessThanOrEqual(1000)
})

test('images of others are pinned by digest', async ({ skip }) => {
  if (unavailable) skip()
  const containerfile = await readFile(join(root, 'deploy/Containerfile'), 'utf8')
  const base = /^ARG NODE_IMAGE=(.*)$/m.exec(containerfile)?.[1]
  const images = workloadsIn(objectsOf('overlays/development'))
    .filter(({ labels }) => labels['app.kubernetes.io/part-of'] !== 'overlay')
    .flatMap(({ containers }) => containers.map(({ image }) => image))
  expect(images).toHaveLength(2)
  for (const image of [base, ...images]) expect(image).toMatch(/^[^@]+:[^@]+@sha256:[0-9a-f]{64}$/)
})

describe.each(folders)('%s', (folder) => {
  test.for(versions)('fits the schemas of Kubernetes %s', { timeout: 300_000 }, async (version, { skip }) => {
    if (unavailable) skip()
    const { text = '', objects = [] } = rendered.get(folder) ?? {}
    // definitions of operators leave metadata to Kubernetes: it is compared as that of another kind
    const metadata = objects
      .filter(definitionOf)
      .map(({ metadata }) => JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata }))
    const lines = await validate([text, ...metadata].join('\n---\n'), version)
    expect(lines.filter((line) => !definitionOf(unknownKind.exec(line)?.groups ?? {}))).toEqual([])
  })

  test('fits the definitions of operators', ({ skip }) => {
    if (unavailable) skip()
    const lines = objectsOf(folder).flatMap((object) => definitionOf(object)?.(object) ?? [])
    expect(lines).toEqual([])
  })

  test('starts each component once, with settings that its program has, all that it needs, and valid values', ({
    skip,
  }) => {
    if (unavailable) skip()
    const objects = objectsOf(folder)
    const workloads = ownWorkloadsIn(objects)
    expect(workloads.map(({ name }) => name.replace(/-\d.*$/, '')).sort()).toEqual(
      [...components, 'migrate'].sort(),
    )
    const containers = workloads.flatMap(({ containers }) => containers)
    const all = new Set(containers.flatMap((one) => Object.values(settingsOf(one)).map(({ env }) => env)))
    for (const container of containers) {
      const settings = new Map(Object.values(settingsOf(container)).map((setting) => [setting.env, setting]))
      const variables = environmentOf(container, objects)
      const program = container.command[1]
      const own = (container.env ?? []).map(({ name }) => name)
      expect([program, own.filter((name) => !settings.has(name))]).toEqual([program, []])
      expect([program, [...variables.keys()].filter((name) => !all.has(name))]).toEqual([program, []])
      const required = [...settings.values()].filter(({ otherwise }) => otherwise === undefined)
      const missing = required.filter(({ env }) => !variables.has(env)).map(({ env }) => env)
      expect([program, missing]).toEqual([program, []])
      for (const [name, value] of variables)
        if (value !== undefined)
          expect(() => settings.get(name)?.parse(value), `${program} ${name}`).not.toThrow()
    }
  })

  test('gives each container the secrets that it needs, and no other', ({ skip }) => {
    if (unavailable) skip()
    const isOutside = folder === 'overlays/production'
    const tls = (server: string) => (isOutside ? [`${server}-tls`] : [])
    const servers = ['nats', ...tls('nats'), ...tls('database')]
    const service = (component: Component, ...own: string[]) =>
      [`${component}-tls`, `${component}-database`, ...servers, ...own].sort()
    const databases = components.slice(1).map((component) => `${component}-database`)
    const workloads = ownWorkloadsIn(objectsOf(folder))
    const actual = workloads.flatMap((workload) =>
      workload.containers.map((one) => [one.command[1], secretsOf(one, workload)] as const),
    )
    expect(Object.fromEntries(actual)).toEqual({
      'gateway/dist/main.js': ['gateway-tls'],
      'services/identity/dist/main.js': service('identity', 'identity-key'),
      'services/pki/dist/main.js': service('pki', 'pki-key'),
      'services/policy/dist/main.js': service('policy'),
      'services/sessions/dist/main.js': service('sessions'),
      'packages/store/dist/migrate.js': [
        'database-owner',
        'pki-key',
        ...databases,
        ...tls('database'),
      ].sort(),
      'services/pki/dist/pki-init.js': ['pki-database', 'pki-key', ...tls('database')].sort(),
      'services/identity/dist/identity-init.js': ['admin', 'identity-database', ...tls('database')].sort(),
    })
  })

  test('opens the ports at which processes listen; services, peers and probes lead to them', ({ skip }) => {
    if (unavailable) skip()
    const objects = objectsOf(folder)
    for (const { name, containers } of processesIn(objects)) {
      const [container] = containers
      if (!container) throw new Error(`${name} has no container`)
      const { ports = [], startupProbe, livenessProbe, readinessProbe } = container
      const variables = environmentOf(container, objects)
      const known = Object.values(settingsOf(container)).map(({ env }) => env)
      const listens = [...variables].filter(([env]) => env.endsWith('_LISTEN') && known.includes(env))
      const opened = Object.fromEntries(ports.map(({ name, containerPort }) => [name, containerPort]))
      expect(listens.map(([, address]) => splitAddress(address ?? '').port).sort()).toEqual(
        Object.values(opened).sort(),
      )
      const portOf = (env: string): number => splitAddress(variables.get(env) ?? '').port
      expect(opened.ops).toBe(portOf('OVERLAY_OPS_LISTEN'))
      const live = { httpGet: { path: '/healthz/live', port: 'ops' } }
      expect([startupProbe, livenessProbe]).toEqual([
        expect.objectContaining(live),
        expect.objectContaining(live),
      ])
      expect(readinessProbe?.grpc?.port).toBe(portOf('OVERLAY_GRPC_HEALTH_LISTEN'))
    }
    const targets = (service: KubernetesObject) => {
      const { selector, ports } = service.spec
      const selected = workloadsIn(objects).filter(({ labels }) =>
        Object.entries(selector).every(([label, value]) => labels[label] === value),
      )
      expect(selected).toHaveLength(1)
      const opened = selected.flatMap(({ containers }) => containers.flatMap(({ ports = [] }) => ports))
      return ports.map(({ port, targetPort }: { port: number; targetPort: string }) => [
        selected[0]?.name,
        port,
        opened.find(({ name }) => name === targetPort)?.containerPort,
      ])
    }
    const targetsOf = (name: string) => targets(named(objects, 'Service', name))
    for (const service of ofKind(objects, 'Service'))
      for (const [, port, opened] of targets(service))
        expect([service.metadata.name, opened]).toEqual([service.metadata.name, port])
    expect(targetsOf('gateway')).toEqual([['gateway', 1280, 1280]])
    expect(targetsOf('control')).toEqual([['sessions', 6262, 6262]])

    const settings = ofKind(objects, 'ConfigMap').flatMap(({ data }) => Object.entries<string>(data))
    const peers = settings.filter(([name]) => name.endsWith('_PEERS'))
    expect(peers).toHaveLength(4)
    for (const [name, peer] of peers) {
      const [, host = '', port] = /^dns:(\w+):(\d+)$/.exec(peer) ?? []
      expect(name).toBe(`OVERLAY_${host.toUpperCase()}_PEERS`)
      expect(targetsOf(host)).toEqual([[host, Number(port), Number(port)]])
      expect(named(objects, 'Service', host).spec).toMatchObject({
        clusterIP: 'None',
        publishNotReadyAddresses: false,
      })
    }
  })

  test('lets processes stop in order, after callers and balancers have left them', ({ skip }) => {
    if (unavailable) skip()
    for (const { name, object, pod, containers } of processesIn(objectsOf(folder))) {
      const pauseSeconds = containers[0]?.lifecycle?.preStop.sleep.seconds ?? 0
      expect(pauseSeconds, name).toBeGreaterThanOrEqual(5)
      expect(pod.terminationGracePeriodSeconds, name).toBeGreaterThan(pauseSeconds + STOP_MS / 1000)
      if (object.kind === 'Deployment')
        expect(object.spec.strategy.rollingUpdate.maxUnavailable, name).toBe(0)
    }
  })

  test('gives no container a privilege, and no pod an account', ({ skip }) => {
    if (unavailable) skip()
    const objects = objectsOf(folder)
    for (const { name, pod, containers } of workloadsIn(objects)) {
      expect([name, pod]).toEqual([
        name,
        expect.objectContaining({
          automountServiceAccountToken: false,
          enableServiceLinks: false,
          securityContext: expect.objectContaining({
            runAsNonRoot: true,
            runAsUser: expect.any(Number),
            seccompProfile: { type: 'RuntimeDefault' },
          }),
        }),
      ])
      for (const { securityContext, resources } of containers) {
        expect([name, securityContext]).toEqual([
          name,
          {
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ['ALL'] },
          },
        ])
        expect(resources).toMatchObject({
          requests: { cpu: expect.any(String), memory: expect.any(String) },
          limits: { memory: expect.any(String) },
        })
      }
    }
    expect(ofKind(objects, 'Namespace')[0]?.metadata.labels).toEqual({
      'pod-security.kubernetes.io/enforce': 'restricted',
    })
  })

  test('has the image of the release, and a job of its own for it', async ({ skip }) => {
    if (unavailable) skip()
    const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }
    const workloads = ownWorkloadsIn(objectsOf(folder))
    const images = workloads.flatMap(({ containers }) => containers.map(({ image }) => image))
    expect(new Set(images.map((image) => image.slice(image.lastIndexOf(':') + 1)))).toEqual(
      new Set([version]),
    )
    const [job] = workloads.filter(({ kind }) => kind === 'Job')
    expect(job?.name).toBe(`migrate-${version.replaceAll('.', '-')}`)
    // its template cannot change: it uses nothing whose name depends on the content
    const names = job?.containers.flatMap(({ envFrom = [] }) =>
      envFrom.map(({ configMapRef }) => configMapRef.name),
    )
    expect(names).toEqual(['addresses'])
  })
})

describe('in production', () => {
  const production = () => objectsOf('overlays/production')

  test('each component has two or more replicas, and gives up at most one of them for maintenance', ({
    skip,
  }) => {
    if (unavailable) skip()
    for (const { name, object } of processesIn(production())) {
      const [scaler] = ofKind(production(), 'HorizontalPodAutoscaler').filter(
        ({ spec }) => spec.scaleTargetRef.name === name && spec.scaleTargetRef.kind === object.kind,
      )
      // a number in the manifest would undo what the autoscaler has set
      expect([name, scaler?.spec.minReplicas ?? object.spec.replicas]).toEqual([name, 2])
      if (scaler) expect(object.spec.replicas).toBeUndefined()
      const { spec } = named(production(), 'PodDisruptionBudget', name)
      expect(spec.maxUnavailable).toBe(1)
      expect(object.spec.template.metadata.labels).toMatchObject(spec.selector.matchLabels)
    }
  })

  test('gateway, policy and sessions scale by processor time, and by metrics that the adapter serves', async ({
    skip,
  }) => {
    if (unavailable) skip()
    const path = 'deploy/kustomize/components/monitoring/adapter.yaml'
    const { rules } = parse(await readFile(join(root, path), 'utf8'))
    const served = rules.custom.map(({ name }: { name: { as: string } }) => name.as)
    const scalers = ofKind(production(), 'HorizontalPodAutoscaler')
    expect(scalers.map(({ metadata }) => metadata.name).sort()).toEqual(['gateway', 'policy', 'sessions'])
    const own = scalers.map(({ spec: { metrics } }) => {
      expect(metrics[0].resource.name).toBe('cpu')
      return metrics[1].pods.metric.name
    })
    expect(own.sort()).toEqual(served.sort())
  })

  test('cert-manager issues the certificate that each process mounts', ({ skip }) => {
    if (unavailable) skip()
    const certificates = ofKind(production(), 'Certificate')
    const issuers = ofKind(production(), 'Issuer').map(({ metadata }) => metadata.name)
    for (const { spec } of certificates) expect(issuers).toContain(spec.issuerRef.name)
    const [authority] = certificates.filter(({ spec }) => spec.isCA)
    expect(named(production(), 'Issuer', 'processes').spec.ca.secretName).toBe(authority?.spec.secretName)
    for (const component of components)
      expect(named(production(), 'Certificate', component).spec).toMatchObject({
        secretName: `${component}-tls`,
        dnsNames: [component],
        usages: expect.arrayContaining(['server auth', 'client auth']),
        privateKey: { algorithm: 'ECDSA', rotationPolicy: 'Always' },
        issuerRef: { name: 'processes', kind: 'Issuer' },
      })
  })

  test('Prometheus reads the metrics of all processes, and has alerts; Grafana has a dashboard', ({
    skip,
  }) => {
    if (unavailable) skip()
    const [monitor] = ofKind(production(), 'PodMonitor')
    const [endpoint] = monitor?.spec.podMetricsEndpoints ?? []
    for (const { labels, containers } of processesIn(production())) {
      expect(labels).toMatchObject(monitor?.spec.selector.matchLabels)
      expect(containers[0]?.ports?.map(({ name }) => name)).toContain(endpoint.port)
    }
    const [rules] = ofKind(production(), 'PrometheusRule')
    for (const group of rules?.spec.groups ?? [])
      for (const rule of group.rules)
        expect(rule).toEqual({
          alert: expect.stringMatching(/^Overlay\w+$/),
          expr: expect.any(String),
          labels: { severity: expect.stringMatching(/^(page|ticket)$/) },
          annotations: expect.objectContaining({ summary: expect.any(String) }),
          ...(rule.for && { for: expect.stringMatching(/^\d+[smh]$/) }),
        })
    const { metadata, data } = named(production(), 'ConfigMap', 'overlay-dashboard')
    expect(metadata.labels).toEqual({ grafana_dashboard: '1' })
    expect(JSON.parse(data['overlay.json']).panels.length).toBeGreaterThan(10)
  })
})
