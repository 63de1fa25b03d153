export * from './import.js'
export * from './manifest.js'
export * from './rows.js'
