export * from './limits.js'
export * from './store.js'
