import { Access, invalid } from '@overlay/rpc'
import type { AccessType } from '../domain/rows.js'

const accessTypes = { [Access.ACCESS_DIAL]: 'Dial', [Access.ACCESS_BIND]: 'Bind' } as const

export function accessTypeOf(access: Access): AccessType {
  if (access === Access.ACCESS_DIAL || access === Access.ACCESS_BIND) return accessTypes[access]
  throw invalid('type', 'invalid session type', access)
}

export const jsonOf = (value: object): Buffer => Buffer.from(JSON.stringify(value))
