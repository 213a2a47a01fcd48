// What the kernels of L-BFGS share. Macro PAIRS: how many pairs of a step and a change of the gradient are kept, in a ring.
#pragma once

#define LBFGS_THREADS 256  // of a block of lbfgs_products, lbfgs_direction and lbfgs_move, one a variable
#define LBFGS_PARTS 4      // blocks of lbfgs_products that share the pairs

// Columns of `products`: four products with each pair, and eight numbers.
#define STEP_CHANGE 0          // s_k y
#define STEP_GRADIENT 1        // s_k g
#define CHANGE_CHANGE 2        // y_k y
#define CHANGE_GRADIENT 3      // y_k g
#define NEW_COLUMN(number) (4 * PAIRS + (number))
#define NEW_CURVATURE 0        // s y
#define NEW_STEP_GRADIENT 1    // s g
#define NEW_CHANGE_CHANGE 2    // y y
#define NEW_CHANGE_GRADIENT 3  // y g
#define NEW_SQUARE 4           // g g
#define OLD_SQUARE 5           // of the gradient at the base
#define SLOPE 6                // of that along the direction
#define NOT_FINITE 7           // how many numbers of g are not
#define COLUMNS NEW_COLUMN(8)

// Integers of a sample in `counters`.
#define COUNTERS 5
#define NEXT 0      // place in the ring of the next pair
#define COUNT 1     // pairs
#define HALVINGS 2  // of the present step
#define DECISION 3  // about the newest point
#define PLACE 4     // in the ring of the newest pair, or -1 if it is not kept

#define HALVED 0    // another point of the same direction follows
#define ACCEPTED 1
#define GIVEN_UP 2  // the base stays, and all pairs are forgotten

// Numbers of a sample in `coefficients`: of the gradient, of the steps and of the changes, which make the direction.
#define COEFFICIENTS (1 + 2 * PAIRS)
