import type { ViewResponse } from '@overlay/rpc'

/** The members that a service adds to entities, in the order of the request. Some have none. */
export const encodeViews = (views: readonly (object | undefined)[]): ViewResponse => ({
  json: views.map((view) => (view ? Buffer.from(JSON.stringify(view)) : empty)),
})

const empty = Buffer.alloc(0)

/** Decodes one of these views. */
export const decodeView = <View extends object = object>(json: Uint8Array | undefined): View | undefined =>
  json && json.length > 0 ? (JSON.parse(Buffer.from(json).toString()) as View) : undefined
