export * from './component-process.js'
export * from './shared-process.js'
