// A box in space, as of a docking, drawn by its edges.
import { Box3D } from 'molstar/lib/mol-math/geometry.js'
import { Vec3 } from 'molstar/lib/mol-math/linear-algebra.js'
import { addBoundingBox } from 'molstar/lib/mol-geo/geometry/mesh/builder/box.js'
import { Mesh } from 'molstar/lib/mol-geo/geometry/mesh/mesh.js'
import { MeshBuilder } from 'molstar/lib/mol-geo/geometry/mesh/mesh-builder.js'
import { Shape } from 'molstar/lib/mol-model/shape.js'
import { ShapeRepresentation } from 'molstar/lib/mol-repr/shape/representation.js'
import { Color } from 'molstar/lib/mol-util/color/index.js'
import type { Box } from '../molecule'

const thickness = 0.2 // ångströms
const colour = Color(0xd55e00)

/** The same mesh is filled again when the box changes, since what is drawn holds on to it. */
function shape(box: Box, before: Shape<Mesh> | undefined): Shape<Mesh> {
  const builder = MeshBuilder.createState(256, 128, before?.geometry)
  builder.currentGroup = 0 // which the colour belongs to
  const half = box.size.map((s) => s / 2)
  const corner = (sign: number) => Vec3.create(box.center[0] + sign * half[0]!, box.center[1] + sign * half[1]!, box.center[2] + sign * half[2]!)
  addBoundingBox(builder, Box3D.create(corner(-1), corner(1)), thickness, 1, 8)
  return Shape.create('Box', box, MeshBuilder.getMesh(builder), () => colour, () => 1, () => 'Box')
}

export const boxRepresentation = () => ShapeRepresentation((_ctx, box: Box, _props, before?: Shape<Mesh>) => shape(box, before), Mesh.Utils)
