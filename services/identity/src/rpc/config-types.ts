import type { MemoryLoad, Projection } from '@overlay/platform'
import type { Change, Context } from '@overlay/rpc'

/** Which config types exist, as policy tells it. */
export interface ConfigTypes {
  /** wire: ids or names become ids; what nobody knows is dropped; 'all' is all. */
  idsOf(wanted: readonly string[], context: Context): Promise<string[]>
}

const everything = 'all'

export interface Names {
  readonly byId: Map<string, string>
  apply(changes: readonly Change[]): void
  load(): MemoryLoad
}

export function configTypeNames(): Names {
  const byId = new Map<string, string>()
  return {
    byId,
    apply(changes) {
      for (const { id, json } of changes) {
        if (json.length === 0) byId.delete(id)
        else byId.set(id, nameIn(json))
      }
    },
    load() {
      const loaded = new Map<string, string>()
      return {
        add(rows) {
          for (const { id, json } of rows) loaded.set(id, nameIn(json))
        },
        end() {
          byId.clear()
          for (const [id, name] of loaded) byId.set(id, name)
        },
      }
    },
  }
}

const nameIn = (json: Change['json']): string =>
  (JSON.parse(Buffer.from(json).toString()) as { readonly name: string }).name

export function configTypes(
  { byId }: Names,
  projection: Pick<Projection, 'position' | 'reach' | 'confirm'>,
): ConfigTypes {
  return {
    async idsOf(wanted, { positions, signal }) {
      if (wanted.length === 0) return []
      if (wanted.includes(everything)) return [everything]
      if (positions.policy) await projection.reach(positions.policy, signal)
      else if (!projection.position()) await projection.confirm(signal) // not loaded yet
      const byName = new Map([...byId].map(([id, name]) => [name, id]))
      const ids = wanted.map((one) => (byId.has(one) ? one : byName.get(one)))
      return [...new Set(ids.filter((id) => id !== undefined))]
    },
  }
}
