export { openJobMethods } from './job-methods.js'
export type { JobDeps } from './jobs.js'
