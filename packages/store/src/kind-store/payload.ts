import type { Entity, PlainOf } from '@overlay/model'
import type { Change } from '@overlay/rpc'

/**
 * Decodes changes of one kind: undefined where the row is deleted. An owner of another release may leave members out.
 * `Extra`: members that only the payload has.
 */
export const payloadDecoder =
  <E extends Entity, Extra extends object = object>({ kind }: E) =>
  ({ json }: Pick<Change, 'json'>): Partial<PlainOf<E> & Extra> | undefined => {
    if (json.length === 0) return undefined
    const payload: unknown = JSON.parse(Buffer.from(json).toString())
    if (payload === null || typeof payload !== 'object')
      throw new Error(`payload of ${kind} is not an object`)
    return payload as Partial<PlainOf<E> & Extra>
  }
