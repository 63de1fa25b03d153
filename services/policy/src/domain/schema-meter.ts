import { MOST_DEPTH, MOST_SCHEMA_STEPS, MOST_WORDS, TEXT_STEP } from '../limits.js'
import { isObject, partsOf, type Schema } from './modern-schema.js'

/** Thrown when a document would take too long. */
export class TooManySteps extends Error {
  override readonly name = 'TooManySteps'
}

/** A schema, prepared for counting. */
interface Plan {
  readonly words: number
  readonly isSet: boolean
  /** Apply to the same value. */
  readonly inPlace: readonly Plan[]
  readonly items: Plan | undefined
  readonly places: readonly (Plan | undefined)[] | undefined
  readonly furtherItems: Plan | undefined
  readonly contains: Plan | undefined
  readonly members: ReadonlyMap<string, Plan | undefined>
  readonly furtherMembers: Plan | undefined
  readonly patterns: readonly Plan[]
  readonly names: Plan | undefined
}

/**
 * Throws when the schema is too large to be compiled, or has a reference without a target. The meter counts, before a
 * document is validated, the steps that this may take, and throws TooManySteps: a few lines with references to themselves
 * can take unbounded time.
 */
export function openMeter(root: Schema): (document: unknown) => void {
  const plan = planOf(root)
  return (document) => {
    let left = MOST_SCHEMA_STEPS
    const take = (steps: number): void => {
      left -= steps
      if (left < 0) throw new TooManySteps('the document takes too many steps')
    }
    const visit = (plan: Plan | undefined, value: unknown, depth: number): void => {
      if (!plan) return
      if (depth > MOST_DEPTH) throw new TooManySteps('the schema refers to itself without an end')
      take(plan.words + textOf(value))
      if (plan.isSet) take(sizeOf(value))
      for (const one of plan.inPlace) visit(one, value, depth + 1)
      if (Array.isArray(value)) visitItems(plan, value, depth + 1)
      else if (isObject(value)) visitMembers(plan, value, depth + 1)
    }
    const visitItems = (plan: Plan, values: readonly unknown[], depth: number): void => {
      const { items, places, furtherItems, contains } = plan
      if (!items && !places && !contains) return
      for (const [i, value] of values.entries()) {
        visit(places ? (i < places.length ? places[i] : furtherItems) : items, value, depth)
        visit(contains, value, depth)
      }
    }
    const visitMembers = (plan: Plan, values: Schema, depth: number): void => {
      const { members, furtherMembers, patterns, names } = plan
      for (const [name, value] of Object.entries(values)) {
        take(1 + 2 * patterns.length + textOf(name))
        visit(members.has(name) ? members.get(name) : furtherMembers, value, depth)
        for (const pattern of patterns) visit(pattern, value, depth)
        visit(names, name, depth)
      }
    }
    visit(plan, document, 0)
  }
}

function planOf(root: Schema): Plan {
  const targets = targetsIn(root)
  const plans = new Map<Schema, Plan>()
  const prepare = (schema: unknown): Plan | undefined => {
    if (!isObject(schema)) return undefined
    const before = plans.get(schema)
    if (before) return before
    const { items, properties, patternProperties, allOf, anyOf, oneOf, dependencies } = schema
    const plan = {} as { -readonly [M in keyof Plan]: Plan[M] }
    plans.set(schema, plan) // before its parts, which may refer to it
    const all = (list: readonly unknown[]): Plan[] => list.flatMap((one) => prepare(one) ?? [])
    return Object.assign(plan, {
      words: wordsOf(schema),
      isSet: schema.uniqueItems === true,
      inPlace: all([
        targets.get(schema),
        ...[allOf, anyOf, oneOf].flatMap((list) => (Array.isArray(list) ? (list as unknown[]) : [])),
        ...membersOf(dependencies).map(([, one]) => one),
        ...[schema.not, schema.if, schema.then, schema.else],
      ]),
      items: Array.isArray(items) ? undefined : prepare(items),
      places: Array.isArray(items) ? items.map(prepare) : undefined,
      furtherItems: prepare(schema.additionalItems),
      contains: prepare(schema.contains),
      members: new Map(membersOf(properties).map(([name, one]) => [name, prepare(one)])),
      furtherMembers: prepare(schema.additionalProperties),
      patterns: all(membersOf(patternProperties).map(([, one]) => one)),
      names: prepare(schema.propertyNames),
    })
  }
  const plan = prepare(root)
  if (!plan) throw new Error('is no object')
  return plan
}

const membersOf = (value: unknown): [string, unknown][] => (isObject(value) ? Object.entries(value) : [])

/** What each reference refers to. Only `#/…`, and only schemas: nothing else is measured. */
function targetsIn(root: Schema): ReadonlyMap<Schema, Schema> {
  const schemas = new Set([root])
  let words = 0
  for (const schema of schemas) {
    words += wordsOf(schema)
    if (words > MOST_WORDS) throw new Error(`has more than ${MOST_WORDS} words`)
    for (const inner of partsOf(schema)) if (isObject(inner)) schemas.add(inner)
  }
  const targets = new Map<Schema, Schema>()
  for (const schema of schemas) {
    if (schema.$ref === undefined) continue
    const target = isLocal(schema.$ref) ? at(root, schema.$ref) : undefined
    if (!isObject(target) || !schemas.has(target)) throw new Error(`has no schema at ${String(schema.$ref)}`)
    targets.set(schema, target)
  }
  return targets
}

const isLocal = (ref: unknown): ref is string => typeof ref === 'string' && /^#(\/|$)/.test(ref)

function at(root: Schema, ref: string): unknown {
  return ref
    .split('/')
    .slice(1)
    .map(nameIn)
    .reduce<unknown>(
      (value, name) =>
        typeof value === 'object' && value !== null && Object.hasOwn(value, name)
          ? (value as Schema)[name]
          : undefined,
      root,
    )
}

function nameIn(part: string): string {
  try {
    return decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')
  } catch {
    return part // not an escape: there is no schema of this name
  }
}

const wordsOf = (schema: Schema): number =>
  Object.entries(schema).reduce((sum, [key, value]) => sum + 1 + listedBy(key, value), 1)

/** What a keyword compares one by one. */
const listedBy = (key: string, value: unknown): number =>
  key === 'enum' || key === 'const'
    ? sizeOf(value)
    : Array.isArray(value)
      ? value.length
      : isObject(value)
        ? Object.keys(value).length
        : 0

const textOf = (value: unknown): number => (typeof value === 'string' ? value.length / TEXT_STEP : 0)

/** The size of a value with everything in it. */
function sizeOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1 + textOf(value)
  let size = 1
  for (const [name, one] of Object.entries(value)) size += textOf(name) + sizeOf(one)
  return size
}
