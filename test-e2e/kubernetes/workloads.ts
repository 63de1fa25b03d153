import { settingsOfCommands, settingsOfProcesses } from '../../launcher/src/settings/process-settings.js'
import type { Settings } from '../../packages/process/src/settings.js'
import type { KubernetesObject } from './kustomize.js'

export const components = ['gateway', 'identity', 'pki', 'policy', 'sessions'] as const
export type Component = (typeof components)[number]

/** What each program of the image reads from its environment. */
const settingsOfPrograms: Readonly<Record<string, Settings>> = {
  'gateway/dist/main.js': settingsOfProcesses.gateway,
  'services/identity/dist/main.js': settingsOfProcesses.identity,
  'services/pki/dist/main.js': settingsOfProcesses.pki,
  'services/policy/dist/main.js': settingsOfProcesses.policy,
  'services/sessions/dist/main.js': settingsOfProcesses.sessions,
  'packages/store/dist/migrate.js': settingsOfCommands.migrate,
  'services/pki/dist/pki-init.js': settingsOfCommands['pki-init'],
  'services/identity/dist/identity-init.js': settingsOfCommands['identity-init'],
}

/** The name of a key in a secret or a map, `name.key`, of which a variable is made. */
interface Reference {
  readonly name: string
  readonly key: string
}

interface Variable {
  readonly name: string
  readonly value?: string
  readonly valueFrom?: {
    readonly secretKeyRef?: Reference
    readonly fieldRef?: { readonly fieldPath: string }
  }
}

interface Probe {
  readonly httpGet?: { readonly path: string; readonly port: string | number }
  readonly grpc?: { readonly port: number }
}

/** A container as in a manifest. */
export interface Container {
  readonly name: string
  readonly image: string
  readonly command: readonly [node: string, program: string]
  readonly env?: readonly Variable[]
  readonly envFrom?: readonly { readonly configMapRef: { readonly name: string } }[]
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[]
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[]
  readonly startupProbe?: Probe
  readonly livenessProbe?: Probe
  readonly readinessProbe?: Probe
  readonly lifecycle?: { readonly preStop: { readonly sleep: { readonly seconds: number } } }
  readonly securityContext?: object
  readonly resources?: { readonly requests: { readonly cpu?: string }; readonly limits: object }
}

/** An object that has a template of pods. */
export interface Workload {
  readonly name: string
  readonly kind: string
  readonly object: KubernetesObject
  readonly labels: Readonly<Record<string, string>>
  // biome-ignore lint/suspicious/noExplicitAny: a part of the object
  readonly pod: any
  readonly containers: readonly Container[]
}

export const workloadsIn = (objects: readonly KubernetesObject[]): readonly Workload[] =>
  objects
    .filter(({ kind }) => ['Deployment', 'StatefulSet', 'Job'].includes(kind))
    .map((object) => {
      const { spec: pod, metadata } = object.spec.template
      const containers = [...(pod.initContainers ?? []), ...pod.containers]
      return {
        name: object.metadata.name,
        kind: object.kind,
        object,
        labels: metadata.labels,
        pod,
        containers,
      }
    })

/** Those whose programs are ours. */
export const ownWorkloadsIn = (objects: readonly KubernetesObject[]): readonly Workload[] =>
  workloadsIn(objects).filter(({ labels }) => labels['app.kubernetes.io/part-of'] === 'overlay')

/** The settings of the program that a container runs. */
export function settingsOf({ command }: Container): Settings {
  const [node, program] = command
  const settings = settingsOfPrograms[program]
  if (node !== 'node' || !settings) throw new Error(`no program of the image: ${command.join(' ')}`)
  return settings
}

/** The variables of a container, as Kubernetes makes them. Values of secrets that are not among the objects are undefined. */
export function environmentOf(
  { env = [], envFrom = [] }: Container,
  objects: readonly KubernetesObject[],
): ReadonlyMap<string, string | undefined> {
  const find = (kind: string, name: string) =>
    objects.find((object) => object.kind === kind && object.metadata.name === name)
  const shared = envFrom.flatMap(({ configMapRef: { name } }) => {
    const map = find('ConfigMap', name)
    if (!map) throw new Error(`there is no ConfigMap ${name}`)
    return Object.entries<string>(map.data)
  })
  const own = env.map(({ name, value, valueFrom }) => {
    const secret = valueFrom?.secretKeyRef
    const data = secret && find('Secret', secret.name)?.data?.[secret.key]
    return [name, data === undefined ? value : Buffer.from(data, 'base64').toString()] as const
  })
  return new Map<string, string | undefined>([...shared, ...own])
}

/** The secrets that a container reads, as variables or files. */
export function secretsOf({ env = [], volumeMounts = [] }: Container, { pod }: Workload): readonly string[] {
  const variables = env.flatMap(({ valueFrom }) => valueFrom?.secretKeyRef?.name ?? [])
  const mounted = volumeMounts.flatMap(({ name }) => {
    const volume = pod.volumes.find((volume: { name: string }) => volume.name === name)
    return volume?.secret?.secretName ?? []
  })
  return [...new Set([...variables, ...mounted])].sort()
}
