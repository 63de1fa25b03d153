/** The parts of the objects of Kubernetes that the cluster of the tests executes. Any other part is refused, or listed in `ignored`. */
export interface Env {
  readonly name: string
  readonly value?: string
  readonly valueFrom?: {
    readonly configMapKeyRef?: KeyRef
    readonly secretKeyRef?: KeyRef
    readonly fieldRef?: { readonly fieldPath: string }
  }
}

interface KeyRef {
  readonly name: string
  readonly key: string
  readonly optional?: boolean
}

interface NamedRef {
  readonly name: string
  readonly optional?: boolean
}

export interface Probe {
  readonly httpGet?: { readonly path: string; readonly port: number | string }
  readonly grpc?: { readonly port: number; readonly service?: string }
  readonly tcpSocket?: { readonly port: number | string }
  readonly exec?: { readonly command: readonly string[] }
  readonly initialDelaySeconds?: number
  readonly periodSeconds?: number
  readonly timeoutSeconds?: number
  readonly failureThreshold?: number
  readonly successThreshold?: number
}

export interface Handler {
  readonly sleep?: { readonly seconds: number }
  readonly exec?: { readonly command: readonly string[] }
}

export interface SecurityContext {
  readonly runAsUser?: number
  readonly runAsGroup?: number
  readonly fsGroup?: number
  readonly readOnlyRootFilesystem?: boolean
}

export interface ContainerSpec {
  readonly name: string
  readonly image: string
  readonly command?: readonly string[]
  readonly args?: readonly string[]
  readonly workingDir?: string
  readonly envFrom?: readonly { readonly configMapRef?: NamedRef; readonly secretRef?: NamedRef }[]
  readonly env?: readonly Env[]
  readonly ports?: readonly { readonly name?: string; readonly containerPort: number }[]
  readonly volumeMounts?: readonly {
    readonly name: string
    readonly mountPath: string
    readonly readOnly?: boolean
    readonly subPath?: string
  }[]
  readonly startupProbe?: Probe
  readonly livenessProbe?: Probe
  readonly readinessProbe?: Probe
  readonly lifecycle?: { readonly preStop?: Handler }
  readonly securityContext?: SecurityContext
}

export interface Volume {
  readonly name: string
  readonly emptyDir?: object
  readonly secret?: { readonly secretName: string; readonly defaultMode?: number; readonly items?: KeyPath[] }
  readonly configMap?: { readonly name: string; readonly defaultMode?: number; readonly items?: KeyPath[] }
}

export interface KeyPath {
  readonly key: string
  readonly path: string
}

export interface PodSpec {
  readonly containers: readonly ContainerSpec[]
  readonly initContainers?: readonly ContainerSpec[]
  readonly volumes?: readonly Volume[]
  readonly securityContext?: SecurityContext
  readonly terminationGracePeriodSeconds?: number
  readonly restartPolicy?: 'Always' | 'OnFailure' | 'Never'
}

export interface PodTemplate {
  readonly metadata?: { readonly labels?: Readonly<Record<string, string>> }
  readonly spec: PodSpec
}

export interface WorkloadSpec {
  readonly replicas?: number
  readonly minReadySeconds?: number
  readonly podManagementPolicy?: 'OrderedReady' | 'Parallel'
  readonly strategy?: {
    readonly rollingUpdate?: {
      readonly maxSurge?: number | string
      readonly maxUnavailable?: number | string
    }
  }
  readonly template: PodTemplate
}

export interface ServiceSpec {
  readonly clusterIP?: string
  readonly type?: string
  readonly publishNotReadyAddresses?: boolean
  readonly selector: Readonly<Record<string, string>>
  readonly ports: readonly { readonly port: number; readonly targetPort?: number | string }[]
}

/** A number of pods, or a share of them. */
export function countOf(value: number | string | undefined, replicas: number, round: 'up' | 'down'): number {
  if (typeof value === 'number') return value
  const share = (Number.parseFloat(value ?? '25%') / 100) * replicas
  return round === 'up' ? Math.ceil(share) : Math.floor(share)
}

/** Of a container: a number, or the name of one of its ports. */
export function portOf(port: number | string, { name, ports }: ContainerSpec): number {
  if (typeof port === 'number') return port
  const found = ports?.find((one) => one.name === port)
  if (!found) throw new Error(`container ${name} has no port ${port}`)
  return found.containerPort
}
