import { kinds, type Service } from '@overlay/model'
import type { EntityServiceService, Methods, ViewResponse } from '@overlay/rpc'
import type { Names } from './seams.js'

export type Viewer = Pick<Methods<EntityServiceService>, 'view'>

/** Asks the owners of kinds for the names of entities. An owner that is missing is an error: no names mean no entities. */
export const namesFrom =
  (owners: Readonly<Partial<Record<Service, Viewer>>>): Names =>
  async (kind, ids, context) => {
    const owner = kinds.get(kind)?.owner
    const viewer = owner && owners[owner]
    if (ids.length === 0) return new Map()
    if (!viewer) throw new Error(`no viewer of the owner of ${kind}`)
    const { json } = await viewer.view({ kind, ids: [...ids] }, context)
    const named = ids.flatMap((id, i) => {
      const view = decodeView<{ readonly name: string }>(json[i])
      return view ? [[id, view.name] as const] : []
    })
    return new Map(named)
  }

/** The members that a service adds to entities, in the order of the request. Some have none. */
export const encodeViews = (views: readonly (object | undefined)[]): ViewResponse => ({
  json: views.map((view) => (view ? Buffer.from(JSON.stringify(view)) : empty)),
})

const empty = Buffer.alloc(0)

/** Decodes one of these views. */
export const decodeView = <View extends object = object>(json: Uint8Array | undefined): View | undefined =>
  json && json.length > 0 ? (JSON.parse(Buffer.from(json).toString()) as View) : undefined
