export * from './channel.js'
export * from './frame.js'
export * from './headers.js'
export * from './message.js'
