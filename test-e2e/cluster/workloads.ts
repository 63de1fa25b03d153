import type { PodTemplate, WorkloadSpec } from './manifests.js'
import { countOf } from './manifests.js'
import { type Pod, type PodDeps, startPod } from './pod.js'

/** A Deployment or a StatefulSet. */
export interface Workload {
  readonly name: string
  /** Those that are in its services or start. */
  pods(): readonly Pod[]
  /** One step towards the spec. Called when anything has changed. */
  reconcile(): void
  /** As many as there should be. */
  replicas(): number
  scale(replicas: number): void
  /** Replaces all pods, by those of another template if there is one. */
  roll(template?: PodTemplate): void
  /** Pods stay as they are until `resume`. */
  pause(): void
  resume(): void
  /** All pods are of the last template and available, and no other one is left. */
  isSettled(): boolean
  /** Ends all pods at once. */
  kill(): Promise<void>
}

interface WorkloadOptions {
  readonly kind: 'Deployment' | 'StatefulSet'
  readonly name: string
  readonly spec: WorkloadSpec
}

export function openWorkload(deps: PodDeps, { kind, name, spec }: WorkloadOptions): Workload {
  let { replicas = 1, template } = spec
  let revision = 0
  let started = 0
  let isStopping = false
  let isPaused = false
  const pods = new Set<Pod>()
  const start = (suffix: string | number): void => {
    const pod = startPod(deps, {
      name: `${name}-${suffix}`,
      template,
      revision,
      minReadySeconds: spec.minReadySeconds ?? 0,
    })
    pods.add(pod)
    void pod.completed.then(() => {
      pods.delete(pod)
      deps.changed()
    })
  }
  const current = (): Pod[] => [...pods].filter((pod) => !pod.isTerminating())
  const stopPod = (pod: Pod | undefined): void => void pod?.stop()

  function deploy(): void {
    const all = current()
    const fresh = all.filter((pod) => pod.revision === revision)
    const old = all.filter((pod) => pod.revision !== revision)
    const { maxSurge, maxUnavailable } = spec.strategy?.rollingUpdate ?? {}
    const surge = old.length > 0 ? countOf(maxSurge, replicas, 'up') : 0
    const missing = Math.min(replicas - fresh.length, replicas + surge - all.length)
    for (let count = 0; count < missing; count++) start(`${revision}-${++started}`)
    let spare = all.filter((pod) => pod.isAvailable()).length
    spare -= replicas - (old.length > 0 ? countOf(maxUnavailable, replicas, 'down') : 0)
    const surplus = old.length > 0 ? old : fresh.slice(0, Math.max(0, fresh.length - replicas))
    for (const pod of surplus) if (!pod.isAvailable() || spare-- > 0) stopPod(pod)
  }

  const numberOf = (pod: Pod): number => Number(pod.name.slice(name.length + 1))
  function setUp(): void {
    const byNumber = new Map([...pods].map((pod) => [numberOf(pod), pod]))
    const all = current()
    const isParallel = spec.podManagementPolicy === 'Parallel'
    for (let number = 0; number < replicas; number++) {
      const pod = byNumber.get(number)
      if (!pod) start(number)
      if (!isParallel && !pod?.isReady()) return
    }
    const surplus = all.filter((pod) => numberOf(pod) >= replicas).sort((a, b) => numberOf(b) - numberOf(a))
    for (const pod of isParallel ? surplus : surplus.slice(0, 1)) stopPod(pod)
    const wanted = all.filter((pod) => numberOf(pod) < replicas)
    const old = wanted.filter((pod) => pod.revision !== revision).sort((a, b) => numberOf(b) - numberOf(a))
    // one at a time; one that does not become ready must not hold up its repair
    const broken = old.find((pod) => !pod.isAvailable())
    if (broken) stopPod(broken)
    else if (wanted.length === replicas && wanted.every((pod) => pod.isAvailable())) stopPod(old[0])
  }

  return {
    name,
    pods: current,
    reconcile() {
      if (isStopping || isPaused) return
      if (kind === 'Deployment') deploy()
      else setUp()
    },
    replicas: () => replicas,
    scale(count) {
      replicas = count
      deps.changed()
    },
    roll(next = template) {
      revision++
      template = next
      deps.changed()
    },
    pause() {
      isPaused = true
    },
    resume() {
      isPaused = false
      deps.changed()
    },
    isSettled: () =>
      pods.size === replicas && [...pods].every((pod) => pod.revision === revision && pod.isAvailable()),
    async kill() {
      isStopping = true
      await Promise.all([...pods].map((pod) => pod.kill()))
    },
  }
}
