import { parseRoles, type Roles, type Semantic, selects } from '@overlay/model'
import { add, type Bitset, difference, emptySet, forEach, has, remove } from './bitset.js'
import { addTo, type Multimap, takeFrom } from './multimap.js'
import type { Population } from './population.js'

/** One role list of one policy, and the entities that it selects. The same object for as long as the policy lives. */
export interface Selector {
  readonly policyId: string
  list: readonly string[]
  roles: Roles
  semantic: Semantic
  /** Empty where the list is `#all`: that is the whole population, at no cost per entity. */
  members: Bitset
}

/** Called when a policy selects other entities than before. */
export interface RoleListener {
  /** This entity. */
  flipped(policyId: string, number: number, wasSelected: boolean): void
  /** Another role list: valid during the call. */
  replaced(policyId: string, before: Bitset, after: Bitset): void
}

/** One column of role lists over one population, readable in both directions. */
export function openRoleIndex(population: Population, listener?: RoleListener) {
  const selectors = new Map<string, Selector>()
  const open = new Set<Selector>()
  const byAttribute: Multimap<string, Selector> = new Map()
  const byId: Multimap<string, Selector> = new Map()
  const reverse: (Selector[] | undefined)[] = []

  const link = (number: number, selector: Selector): void => {
    const list = reverse[number]
    if (list) list.push(selector)
    else reverse[number] = [selector]
  }
  const unlink = (number: number, selector: Selector): void => {
    const list = reverse[number] ?? []
    const last = list.pop()
    if (last && last !== selector) list[list.indexOf(selector)] = last
  }
  const enlist = (selector: Selector): void => {
    const { all, attributes, ids } = selector.roles
    if (all) open.add(selector)
    for (const attribute of attributes) addTo(byAttribute, attribute, selector)
    for (const id of ids) addTo(byId, id, selector)
  }
  const delist = (selector: Selector): void => {
    open.delete(selector)
    for (const attribute of selector.roles.attributes) takeFrom(byAttribute, attribute, selector)
    for (const id of selector.roles.ids) takeFrom(byId, id, selector)
  }
  const choose = (selector: Selector, members: Bitset): void => {
    forEach(difference(selector.members, members), (number) => unlink(number, selector))
    forEach(difference(members, selector.members), (number) => link(number, selector))
    selector.members = members
  }

  const selected = ({ roles, members }: Selector): Bitset => (roles.all ? population.present : members)

  return {
    population,
    /** The lists that are `#all`. */
    open: open as ReadonlySet<Selector>,
    get: (policyId: string): Selector | undefined => selectors.get(policyId),
    policyIds: (): Iterable<string> => selectors.keys(),
    /** The other lists that select this entity. */
    selecting: (number: number): readonly Selector[] => reverse[number] ?? [],
    /** The entities that it selects. A new list has a new set. */
    membersOf(policyId: string): Bitset {
      const selector = selectors.get(policyId)
      return selector ? selected(selector) : noMembers
    },
    selects(policyId: string, number: number): boolean {
      const selector = selectors.get(policyId)
      return selector !== undefined && (selector.roles.all || has(selector.members, number))
    },
    /** Sets the policy's list. Costs as much as the selection changes. */
    put(policyId: string, list: readonly string[], semantic: Semantic): void {
      const roles = parseRoles(list)
      const current = selectors.get(policyId)
      const before = current ? selected(current) : noMembers
      const selector = current ?? { policyId, list, roles, semantic, members: emptySet() }
      delist(selector)
      selectors.set(policyId, Object.assign(selector, { list, roles, semantic }))
      enlist(selector)
      choose(selector, roles.all ? emptySet() : population.matching(roles, semantic))
      listener?.replaced(policyId, before, selected(selector))
    },
    remove(policyId: string): void {
      const selector = selectors.get(policyId)
      if (!selector) return
      const before = selected(selector)
      delist(selector)
      choose(selector, emptySet())
      selectors.delete(policyId)
      listener?.replaced(policyId, before, noMembers)
    },
    /** An entity was added, or these attributes of it were added or removed. True: other lists select it than before. */
    entityPlaced(number: number, changed: readonly string[], isNew: boolean): boolean {
      const id = population.idOf(number)
      const entity = { id, attributes: new Set(population.attributesOf(number)) }
      let hasChanged = isNew && open.size > 0
      const update = (selector: Selector): void => {
        const { roles, semantic, members } = selector
        const isSelected = !roles.all && selects(roles, semantic, entity)
        if (isSelected === has(members, number)) return // unchanged, or handled before
        hasChanged = true
        if (isSelected) add(members, number)
        else remove(members, number)
        if (isSelected) link(number, selector)
        else unlink(number, selector)
        listener?.flipped(selector.policyId, number, !isSelected)
      }
      if (isNew) for (const { policyId } of open) listener?.flipped(policyId, number, false)
      for (const attribute of changed) byAttribute.get(attribute)?.forEach(update)
      if (isNew) byId.get(id)?.forEach(update)
      return hasChanged
    },
    /** Before the population loses it. */
    entityRemoved(number: number): void {
      for (const { policyId, members } of reverse[number] ?? []) {
        remove(members, number)
        listener?.flipped(policyId, number, true)
      }
      for (const { policyId } of open) listener?.flipped(policyId, number, true)
      reverse[number] = undefined
    },
  }
}

export type RoleIndex = ReturnType<typeof openRoleIndex>

const noMembers: Bitset = Object.freeze(emptySet())
