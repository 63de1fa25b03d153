import { type Comparison, type Filter, type Literal, memoized, type Value } from '@overlay/model'
import { type Bitset, isCovered, isEmpty, meets, setOf, sizeOf } from './bitset.js'
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
 * becomes the ids of the policies for which it is true. Null: a term is not defined for sets. A term is answered from one
 * moment, a count from one during the call; `yieldNow` is awaited between terms, of which a filter may have a thousand.
 */
export async function withoutLinkedSets(
  state: State,
  filter: Filter,
  yieldNow: () => Promise<void> | undefined,
): Promise<Filter | null> {
  const sizeOfSet = memoized(sizeOf) // many terms may ask for it
  const without = async (part: Filter): Promise<Filter | null> => {
    switch (part.op) {
      case 'true':
      case 'false':
        return part
      case 'and':
      case 'or': {
        const terms: Filter[] = []
        for (const one of part.terms) {
          const term = await without(one)
          if (!term) return null
          terms.push(term)
        }
        return { op: part.op, terms }
      }
      case 'not': {
        const term = await without(part.term)
        return term && { op: 'not', term }
      }
      default:
        if (!linkedSets.includes(part.symbol)) return part
        await yieldNow()
        return answer(state, part.symbol === 'identities' ? 'left' : 'right', part, sizeOfSet)
    }
  }
  return without(filter)
}

type Size = (set: Bitset) => number

function answer(state: State, side: 'left' | 'right', term: SetTerm, sizeOfSet: Size): Filter | null {
  const ids: string[] = []
  for (const granted of accesses(state)) {
    const index = granted[side]
    const test = testOf(index, term, sizeOfSet)
    if (!test) return null
    for (const policyId of index.policyIds()) if (test(index.membersOf(policyId))) ids.push(policyId)
  }
  return ids.length > 0 ? { op: 'in', symbol: 'id', values: ids } : { op: 'false' }
}

type Test = (members: Bitset) => boolean

function testOf(index: RoleIndex, term: SetTerm, sizeOfSet: Size): Test | null {
  if (term.op === 'isEmpty') return isEmpty
  if (term.linked || !term.of) return null
  if (term.of === 'count') {
    const compare = 'value' in term ? compareWith(term.op, term.value) : null
    return compare && ((members) => compare(sizeOfSet(members)))
  }
  const named = namedBy(index, term)
  if (!named) return null
  const hasNone: Test = (members) => !meets(members, named)
  const hasOthers: Test = (members) => !isCovered(members, [named])
  const isEvery = term.of === 'allOf'
  switch (term.op) {
    case '=':
    case 'in':
      return (members) => !(isEvery ? hasOthers : hasNone)(members)
    case '!=': // wire: "some member is not x" is false when another one is x
      return isEvery ? hasNone : (members) => !isEmpty(members) && hasNone(members)
    case 'not in':
      return isEvery ? hasNone : hasOthers
    default:
      return null
  }
}

/** The entities that the term names, as far as they exist. */
function namedBy({ population }: RoleIndex, term: Comparison): Bitset | null {
  const values: readonly (Value | Literal)[] =
    'values' in term ? term.values : 'value' in term ? [term.value] : []
  if (!values.every((value) => typeof value === 'string')) return null
  return setOf(values.map((id) => population.numberOf(id)).filter((number) => number !== undefined))
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
