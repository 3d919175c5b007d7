// The modules that the viewer loads when it is first shown.
export { readModel, readMotion, needsTopology } from './read'
export { Scene } from './scene'
