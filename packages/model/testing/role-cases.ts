import type { Semantic } from '../src/kernel/roles.js'

/** One rule of role matching: which of the three entities of `roleCaseEntities` the list selects. */
export interface RoleCase {
  readonly rule: string
  readonly roles: readonly string[]
  readonly semantic: Semantic
  readonly selected: readonly string[]
}

export const roleCaseEntities = [
  { id: 'i1', roleAttributes: ['a', 'b'] },
  { id: 'i2', roleAttributes: ['a', 'all'] },
  { id: 'i3', roleAttributes: [] },
] as const

/** Fed to every implementation of the rule: the one in TypeScript, the one in SQL and the policy engine. */
export const roleCases: readonly RoleCase[] = [
  { rule: 'an empty list selects nothing', roles: [], semantic: 'AllOf', selected: [] },
  { rule: 'an empty list selects nothing under AnyOf either', roles: [], semantic: 'AnyOf', selected: [] },
  { rule: '#all selects everybody', roles: ['#all'], semantic: 'AllOf', selected: ['i1', 'i2', 'i3'] },
  {
    rule: '#all selects everybody under AnyOf',
    roles: ['#all'],
    semantic: 'AnyOf',
    selected: ['i1', 'i2', 'i3'],
  },
  { rule: 'AllOf wants every attribute', roles: ['#a', '#b'], semantic: 'AllOf', selected: ['i1'] },
  { rule: 'AnyOf wants one attribute', roles: ['#a', '#b'], semantic: 'AnyOf', selected: ['i1', 'i2'] },
  { rule: 'one attribute is the same under both', roles: ['#a'], semantic: 'AllOf', selected: ['i1', 'i2'] },
  {
    rule: 'a named id is added to AllOf',
    roles: ['#a', '#b', '@i3'],
    semantic: 'AllOf',
    selected: ['i1', 'i3'],
  },
  {
    rule: 'a named id is added to AnyOf',
    roles: ['#a', '#b', '@i3'],
    semantic: 'AnyOf',
    selected: ['i1', 'i2', 'i3'],
  },
  {
    rule: 'an unknown attribute does not bind ids',
    roles: ['#zzz', '@i3'],
    semantic: 'AllOf',
    selected: ['i3'],
  },
  { rule: 'ids alone select themselves', roles: ['@i1', '@i3'], semantic: 'AllOf', selected: ['i1', 'i3'] },
  { rule: 'an id that does not exist selects nothing', roles: ['@i9'], semantic: 'AnyOf', selected: [] },
  { rule: 'AllOf fails on one unknown attribute', roles: ['#a', '#zzz'], semantic: 'AllOf', selected: [] },
  { rule: 'attributes are case-sensitive', roles: ['#A'], semantic: 'AnyOf', selected: [] },
  { rule: '#All is an ordinary attribute', roles: ['#All'], semantic: 'AllOf', selected: [] },
  { rule: 'the id is not an attribute', roles: ['#i1'], semantic: 'AnyOf', selected: [] },
  { rule: 'an attribute is not an id', roles: ['@a'], semantic: 'AnyOf', selected: [] },
]
