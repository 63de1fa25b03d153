export * from './bounded-decode.js'
export * from './channel.js'
export { fieldHead } from './field-head.js'
export {
  encodeFrame,
  type FrameDecoder,
  type FrameLimits,
  frameDecoder,
  MalformedFrame,
} from './frame.js'
export * from './gen/overlay/ctrl/v1/ctrl.js'
export * from './gen/overlay/ctrl/v1/edge.js'
export * from './gen/overlay/ctrl/v1/mgmt.js'
export * from './gen/overlay/ctrl/v1/model.js'
export * from './headers.js'
export * from './hello.js'
export { HELLO_LIMITS, MESSAGE_LIMITS } from './limits.js'
export * from './message.js'
export { ReplyTimeout } from './pending-requests.js'
export * from './types.js'
export * from './version.js'
