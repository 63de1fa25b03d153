/** The specification of a HorizontalPodAutoscaler, as far as ours have it. */
export interface AutoscalerSpec {
  readonly scaleTargetRef: { readonly kind: string; readonly name: string }
  readonly minReplicas: number
  readonly maxReplicas: number
  readonly metrics: readonly MetricSpec[]
  readonly behavior: {
    readonly scaleDown: {
      readonly stabilizationWindowSeconds: number
      readonly policies: readonly {
        readonly type: string
        readonly value: number
        readonly periodSeconds: number
      }[]
      readonly selectPolicy?: string
    }
    readonly scaleUp?: object
  }
}

/** Of the type `Resource` or `Pods`. */
export interface MetricSpec {
  readonly resource?: { readonly name: string; readonly target: Target }
  readonly pods?: { readonly metric: { readonly name: string }; readonly target: Target }
}

interface Target {
  readonly type: string
  readonly averageValue?: string
}

/** Of each pod. Undefined: it has no value yet. */
export type Values = readonly (number | undefined)[]

export function nameOf({ resource, pods }: MetricSpec): string {
  const name = resource?.name ?? pods?.metric.name
  if (name === undefined) throw new Error('not evaluated here: a metric that is not of pods')
  return name
}

function targetOf({ resource, pods }: MetricSpec): number {
  const target = resource?.target ?? pods?.target
  const [, digits, milli] = /^(\d+)(m?)$/.exec(target?.averageValue ?? '') ?? []
  if (target?.type !== 'AverageValue' || digits === undefined)
    throw new Error(`not evaluated here: the target ${JSON.stringify(target)}`)
  return Number(digits) / (milli ? 1000 : 1)
}

/** Says how many replicas there should be, and remembers that for later answers. */
export interface Scaling {
  /** @param values of each metric @param atSeconds by the clock of the test */
  next(current: number, values: readonly Values[], atSeconds: number): number
}

/** As the controller of Kubernetes computes it, but growth has no limit besides `maxReplicas`. */
export function openScaling({ minReplicas, maxReplicas, metrics, behavior }: AutoscalerSpec): Scaling {
  const { stabilizationWindowSeconds, policies, selectPolicy } = behavior.scaleDown
  if (behavior.scaleUp || selectPolicy || policies.some(({ type }) => type !== 'Pods'))
    throw new Error(`not evaluated here: the behavior ${JSON.stringify(behavior)}`)
  const recommended: { readonly at: number; readonly replicas: number }[] = []
  const changes: { readonly at: number; readonly by: number }[] = []

  function recommend(current: number, values: readonly Values[]): number {
    const all = metrics.map((metric, at) => recommendedBy(values[at] ?? [], targetOf(metric)))
    const most = Math.max(...all.filter((one) => one !== undefined))
    return all.includes(undefined) ? Math.max(most, current) : most // it could be the one that asks for most
  }
  function shrink(current: number, now: number): number {
    const since = now - stabilizationWindowSeconds
    const highest = Math.max(...recommended.filter(({ at }) => at > since).map(({ replicas }) => replicas))
    const before = (seconds: number): number =>
      changes.filter(({ at }) => at > now - seconds).reduce((replicas, { by }) => replicas - by, current)
    const lowest = Math.min(...policies.map(({ value, periodSeconds }) => before(periodSeconds) - value))
    return Math.min(Math.max(highest, lowest), current)
  }

  return {
    next(current, values, now) {
      if (recommended.length === 0) recommended.push({ at: now, replicas: current })
      let next = current
      if (current >= minReplicas && current <= maxReplicas) {
        next = recommend(current, values)
        recommended.push({ at: now, replicas: next })
        if (next < current) next = shrink(current, now)
      }
      next = Math.min(Math.max(next, minReplicas), maxReplicas)
      changes.push({ at: now, by: next - current })
      return next
    },
  }
}

const TOLERANCE = 0.1

/**
 * A pod without a value counts as one at the target where the others are below it, and as idle where they are above. Undefined:
 * no pod has a value.
 */
function recommendedBy(values: Values, target: number): number | undefined {
  const known = values.filter((value) => value !== undefined)
  if (known.length === 0) return undefined
  const ratioOf = (all: readonly number[]): number =>
    all.reduce((sum, value) => sum + value, 0) / all.length / target
  const ofKnown = ratioOf(known)
  const ratio = ratioOf(values.map((value) => value ?? (ofKnown < 1 ? target : 0)))
  const isSteady = Math.abs(ratio - 1) <= TOLERANCE || ratio < 1 !== ofKnown < 1
  return isSteady ? values.length : Math.ceil(ratio * values.length)
}
