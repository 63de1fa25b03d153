import type { ViewResponse } from '@overlay/rpc'

/** What a service knows of others' entities, in the order that was asked for: nothing of some. */
export const encodeViews = (members: readonly (object | undefined)[]): ViewResponse => ({
  json: members.map((known) => (known ? Buffer.from(JSON.stringify(known)) : nothing)),
})

const nothing = Buffer.alloc(0)

/** The same at the other end. */
export const decodeView = <View extends object = object>(json: Uint8Array | undefined): View | undefined =>
  json && json.length > 0 ? (JSON.parse(Buffer.from(json).toString()) as View) : undefined
