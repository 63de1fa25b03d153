export * from './export.js'
export * from './import.js'
export * from './manifest.js'
export * from './rows.js'
