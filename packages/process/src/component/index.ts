export * from './part-process.js'
export * from './shared-process.js'
