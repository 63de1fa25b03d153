import type { Comparison, Filter, Literal, Value } from '@overlay/model'
import { isEmpty, sizeOf } from './bitset.js'
import { accesses } from './effect.js'
import type { RoleIndex } from './role-index.js'
import type { State } from './state.js'

type SetTerm = Extract<Filter, { readonly op: 'isEmpty' }> | Comparison

const linkedSets = ['identities', 'services']

export function namesLinkedSets(filter: Filter): boolean {
  switch (filter.op) {
    case 'true':
    case 'false':
      return false
    case 'and':
    case 'or':
      return filter.terms.some(namesLinkedSets)
    case 'not':
      return namesLinkedSets(filter.term)
    default:
      return linkedSets.includes(filter.symbol)
  }
}

/**
 * A filter over service policies without the sets of identities and services that they select: a term about such a set
 * becomes the ids of the policies for which it is true. Null: a term is not defined for sets.
 */
export function withoutLinkedSets(state: State, filter: Filter): Filter | null {
  switch (filter.op) {
    case 'true':
    case 'false':
      return filter
    case 'and':
    case 'or': {
      const terms = filter.terms.map((term) => withoutLinkedSets(state, term))
      return terms.every((term) => term !== null) ? { op: filter.op, terms } : null
    }
    case 'not': {
      const term = withoutLinkedSets(state, filter.term)
      return term && { op: 'not', term }
    }
    default:
      if (!linkedSets.includes(filter.symbol)) return filter
      return answer(state, filter.symbol === 'identities' ? 'left' : 'right', filter)
  }
}

function answer(state: State, side: 'left' | 'right', term: SetTerm): Filter | null {
  const ids: string[] = []
  for (const granted of accesses(state)) {
    const index = granted[side]
    const test = testOf(index, term)
    if (!test) return null
    for (const policyId of index.policyIds()) if (test(policyId)) ids.push(policyId)
  }
  return ids.length > 0 ? { op: 'in', symbol: 'id', values: ids } : { op: 'false' }
}

type Test = (policyId: string) => boolean

function testOf(index: RoleIndex, term: SetTerm): Test | null {
  const size: (policyId: string) => number = (policyId) => sizeOf(index.membersOf(policyId))
  if (term.op === 'isEmpty') return (policyId) => isEmpty(index.membersOf(policyId))
  if (term.linked || !term.of) return null
  if (term.of === 'count') {
    const compare = 'value' in term ? compareWith(term.op, term.value) : null
    return compare && ((policyId) => compare(size(policyId)))
  }
  const named = numbersOf(index, term)
  if (!named) return null
  const count: (policyId: string) => number = (policyId) =>
    named.filter((number) => index.selects(policyId, number)).length
  const isEvery = term.of === 'allOf'
  switch (term.op) {
    case '=':
    case 'in':
      return isEvery ? (id) => count(id) === size(id) : (id) => count(id) > 0
    case '!=': // wire: "some member is not x" is false when another one is x
      return isEvery ? (id) => count(id) === 0 : (id) => size(id) > 0 && count(id) === 0
    case 'not in':
      return isEvery ? (id) => count(id) === 0 : (id) => size(id) > count(id)
    default:
      return null
  }
}

/** The entities that the term names, as far as they exist. */
function numbersOf({ population }: RoleIndex, term: Comparison): number[] | null {
  const values: readonly (Value | Literal)[] =
    'values' in term ? term.values : 'value' in term ? [term.value] : []
  if (!values.every((value) => typeof value === 'string')) return null
  return [...new Set(values)].map((id) => population.numberOf(id)).filter((number) => number !== undefined)
}

function compareWith(op: Comparison['op'], value: Value): ((size: number) => boolean) | null {
  if (typeof value !== 'bigint' && typeof value !== 'number') return null
  const limit = Number(value)
  switch (op) {
    case '=':
      return (size) => size === limit
    case '!=':
      return (size) => size !== limit
    case '<':
      return (size) => size < limit
    case '<=':
      return (size) => size <= limit
    case '>':
      return (size) => size > limit
    case '>=':
      return (size) => size >= limit
    default:
      return null
  }
}
