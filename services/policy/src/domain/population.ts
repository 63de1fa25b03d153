import type { Roles, Semantic } from '@overlay/model'
import { add, addAll, type Bitset, emptySet, forEach, intersection, isEmpty, remove } from './bitset.js'

export interface Placed {
  readonly number: number
  readonly isNew: boolean
  readonly changed: readonly string[]
}

interface Member {
  readonly id: string
  readonly attributes: readonly string[]
}

/** All entities of one kind. Each has a small number, which is used again after the entity is removed. */
export function openPopulation() {
  const numbers = new Map<string, number>()
  const members: (Member | undefined)[] = []
  const free: number[] = []
  const having = new Map<string, Bitset>()
  const present = emptySet()
  const tracked = new Set<Bitset>()

  const memberAt = (number: number): Member => {
    const member = members[number]
    if (!member) throw new Error(`no entity has number ${number}`)
    return member
  }
  const holders = (attribute: string): Bitset => having.get(attribute) ?? noMembers

  const mark = (attribute: string, number: number): void => {
    const set = having.get(attribute) ?? emptySet()
    having.set(attribute, set)
    add(set, number)
  }
  const unmark = (attribute: string, number: number): void => {
    const set = holders(attribute)
    remove(set, number)
    if (isEmpty(set)) having.delete(attribute)
  }

  return {
    present,
    numberOf: (id: string): number | undefined => numbers.get(id),
    idOf: (number: number): string => memberAt(number).id,
    attributesOf: (number: number): readonly string[] => memberAt(number).attributes,
    idsOf(set: Bitset): string[] {
      const ids: string[] = []
      forEach(set, (number) => ids.push(memberAt(number).id))
      return ids
    },
    /** Adds or changes an entity; returns which of its attributes were added or removed. */
    put(id: string, attributes: readonly string[]): Placed {
      const current = numbers.get(id)
      const number = current ?? free.pop() ?? members.length
      const before = new Set(current === undefined ? [] : memberAt(current).attributes)
      const after = new Set(attributes)
      members[number] = { id, attributes: [...after] }
      numbers.set(id, number)
      add(present, number)
      const added = [...after].filter((attribute) => !before.has(attribute))
      const removed = [...before].filter((attribute) => !after.has(attribute))
      for (const attribute of added) mark(attribute, number)
      for (const attribute of removed) unmark(attribute, number)
      return { number, isNew: current === undefined, changed: [...added, ...removed] }
    },
    /** The caller has removed the number before from all sets other than tracked ones. */
    remove(number: number): void {
      const { id, attributes } = memberAt(number)
      for (const attribute of attributes) unmark(attribute, number)
      remove(present, number)
      for (const set of tracked) remove(set, number)
      numbers.delete(id)
      members[number] = undefined
      free.push(number)
    },
    /** An empty set that loses each member when it is removed. For sets that outlive the next change. */
    track(): Bitset {
      const set = emptySet()
      tracked.add(set)
      return set
    },
    /** The set is no longer used. */
    untrack: (set: Bitset): void => void tracked.delete(set),
    /** What a role list selects; `#all` is ignored. */
    matching({ attributes, ids }: Roles, semantic: Semantic): Bitset {
      const [first, ...rest] = attributes.map(holders)
      let result = emptySet()
      if (first) addAll(result, first)
      for (const other of rest) {
        if (semantic === 'AllOf') result = intersection(result, other)
        else addAll(result, other)
      }
      for (const id of ids) {
        const number = numbers.get(id)
        if (number !== undefined) add(result, number)
      }
      return result
    },
  }
}

export type Population = ReturnType<typeof openPopulation>

const noMembers: Bitset = Object.freeze(emptySet())
